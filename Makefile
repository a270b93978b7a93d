# Two commands for learners: make lab, make test. The rest is for maintainers and instructors.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
COURSE := $(VENV)/installed
ALL    := $(VENV)/installed-dev
NIGHT  := $(VENV)/installed-nightly
INLITE := $(VENV)-lite
CLASS  := $(VENV)-class
REVEAL := reveal.js@5.2.1
# Asks an environment for the folder of its packages.
PURELIB := python -c "import sysconfig; print(sysconfig.get_path('purelib'))"
# What is run imports this checkout, also where another one is installed.
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))
# Or each kernel, and each process that a test starts, would compile the library again.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest --numprocesses=logical --maxprocesses=8 --no-loadscope-reorder

lab: $(COURSE)       ## copy the notebooks to my_notebooks/ and open them in JupyterLab
	$(BIN)/python tools/lab.py $(OPTIONS)

test: $(ALL)         ## run the unit tests and compare every cell of every notebook
	$(PYTEST) $(OPTIONS)

browser: $(ALL)      ## look at every kind of picture and slider in a headless browser
	$(PYTEST) -m "browser and not nightly" tests/browser --maxprocesses=2 $(OPTIONS)

nightly: $(NIGHT) $(CLASS)/installed $(INLITE)/installed    ## run the long tests: every notebook in the browser, the grading tools
	$(PYTEST) -m "nightly and not browser" $(OPTIONS)
	$(PYTEST) -m "nightly and browser" tests/browser $(OPTIONS)

bench: $(NIGHT)      ## measure attention against the machine's limit
	$(BIN)/python bench/bench.py $(OPTIONS)

train: $(ALL)        ## train the tiny model of notebook 18 again and store its checkpoints
	$(BIN)/python bench/train.py $(OPTIONS)

notebooks: $(ALL)    ## execute all notebooks again and write their normal form
	$(BIN)/python tools/renew.py $(OPTIONS)

student: $(ALL)      ## write copies without solutions to student/
	$(BIN)/python tools/student.py $(OPTIONS)

assignment: $(CLASS)/installed    ## write the course as an nbgrader assignment to assignment/
	$(CLASS)/bin/python tools/grade/assignment.py $(OPTIONS)

assignment-otter: $(CLASS)/installed    ## write notebooks for otter-grader to assignment_otter/
	$(CLASS)/bin/python tools/grade/assignment.py --otter $(OPTIONS)

questions: $(ALL)    ## write questions whose wrong options are real mistakes, for Moodle, Canvas and paper
	$(BIN)/python tools/bank/write_bank.py $(OPTIONS)

sheet: $(ALL)        ## write the eleven steps on one page to print, in sheet/
	$(BIN)/python tools/bank/one_page.py $(OPTIONS)

slides: $(ALL) $(VENV)/reveal    ## write the evening as slides with speaker notes to slides/
	$(BIN)/python tools/site/build_slides.py --reveal $(VENV)/node_modules/reveal.js $(OPTIONS)

site: $(ALL)         ## write the course as web pages to site/, for reading without Python; LITE=lite puts what make lite wrote beside
	$(BIN)/python tools/site/build_site.py $(if $(LITE),--lite "$(LITE)") $(OPTIONS)

lite: $(INLITE)/installed    ## write the course to lite/, where it runs in a browser (experimental): make lite TORCH=FILE.whl
	@test -f "$(TORCH)" || { echo "Name torch's wheel for Pyodide: make lite TORCH=FILE.whl. docs/install.md says which."; exit 1; }
	$(INLITE)/bin/python tools/lite.py "$(TORCH)" $(OPTIONS)

lint: $(ALL)         ## check the style of all code, who imports whom, and the lines of each room
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/budget.py

hooks: $(ALL)        ## have git check each commit: style, notebooks' normal form
	$(BIN)/pre-commit install

help:                ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' Makefile

# The installer is asked at each start: it rebuilds an environment that is broken, and does nothing
# where all is installed. An environment that works needs no other Python.
$(COURSE): requirements.txt
$(ALL): requirements-dev.txt $(COURSE)
$(NIGHT): requirements-nightly.txt $(ALL)
$(COURSE) $(ALL) $(NIGHT): FORCE
	@python=$$(command -v "$(PYTHON)" || command -v $(BIN)/python) || { echo "There is no $(PYTHON) here. Name a Python from 3.11 to 3.14: make PYTHON=python3.12 lab"; exit 1; }; \
	"$$python" tools/install.py $(filter requirements%,$^) --into $(VENV)

FORCE:

# It sees what the course has installed, and adds to it without changing it.
$(CLASS)/installed: requirements-class.txt $(ALL)
	@echo "Installing nbgrader and otter-grader into $(CLASS): requirements-class.txt."
	"$(PYTHON)" -m venv $(CLASS)
	echo "import site; site.addsitedir('$$($(BIN)/$(PURELIB))')" > "$$($(CLASS)/bin/$(PURELIB))/course.pth"
	mkdir -p $(CLASS)/share/jupyter
	ln -sfn "$(abspath $(VENV))/share/jupyter/lab" "$(abspath $(VENV))/share/jupyter/nbconvert" $(CLASS)/share/jupyter/
	$(CLASS)/bin/python -m pip install --disable-pip-version-check --quiet -c constraints.txt -r requirements-class.txt
	touch $@

$(INLITE)/installed: requirements-lite.txt
	"$(PYTHON)" -m venv $(INLITE)
	PYTHONPATH= $(INLITE)/bin/python -m pip install --disable-pip-version-check --quiet -r requirements-lite.txt
	touch $@

$(VENV)/reveal: $(COURSE)
	npm install --silent --prefix $(VENV) $(REVEAL)
	touch $@

.PHONY: lab test browser nightly bench train notebooks student assignment assignment-otter questions sheet slides site lite lint hooks help
