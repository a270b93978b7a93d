# Two commands for learners: make lab, make test. The rest is for maintainers and instructors.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/installed

lab: $(READY)        ## copy the notebooks to my_notebooks/ and open them in JupyterLab
	$(BIN)/python tools/lab.py $(OPTIONS)

test: $(READY)       ## run the unit tests and compare every cell of every notebook
	$(BIN)/python -m pytest --numprocesses=logical --maxprocesses=8 --dist=loadfile $(OPTIONS)

browser: $(READY)    ## open every notebook in JupyterLab in a headless browser
	$(BIN)/python -m pytest -m browser tests/browser --numprocesses=2 --dist=worksteal $(OPTIONS)

bench: $(READY)      ## measure attention against the machine's limit, and how costs grow
	$(BIN)/python tools/bench.py $(OPTIONS)
	$(BIN)/python tools/bench_growth.py

bench-sliders: $(READY)  ## measure how fast sliders answer, beside interact with pyplot
	$(BIN)/python tools/bench_sliders.py $(OPTIONS)

train: $(READY)      ## train the tiny model of notebook 18 again and store its moments
	$(BIN)/python tools/train.py $(OPTIONS)

notebooks: $(READY)  ## execute all notebooks again and write their normal form
	$(BIN)/python tools/renew.py $(OPTIONS)

student: $(READY)    ## write copies without solutions to student/
	$(BIN)/python tools/student.py $(OPTIONS)

site: $(READY)       ## write the course as web pages to site/, for reading without Python
	$(BIN)/python tools/build_site.py $(OPTIONS)

lint: $(READY)       ## check the style of all code, notebooks included
	$(BIN)/ruff check
	$(BIN)/ruff format --check

help:                ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' Makefile

$(READY): requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements.txt
	touch $@

.PHONY: lab test browser bench bench-sliders train notebooks student site lint help
