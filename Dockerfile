# The course in a container: a learner's JupyterLab, not root, offline once it is built.
#
#   docker build --build-arg TORCH_INDEX=ADDRESS -t eleven-steps .
#   docker run --rm -p 127.0.0.1:8888:8888 -v eleven-steps:/home/learner/work eleven-steps
#
# ADDRESS is the index of torch's CPU builds, from its install page. Without it torch comes from the
# usual index, on some systems with libraries for graphics cards that nothing here needs.
#
# The base image is named by its tag, so that a rebuild brings Debian's and Python's security fixes. An
# image to be kept as it is names the digest that `docker images --digests` shows after the build.
FROM python:3.11-slim

ARG TORCH_INDEX=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

RUN useradd --create-home --uid 1000 learner
WORKDIR /opt/course

# torch first: it is large and changes seldom.
COPY requirements.txt constraints.txt ./
RUN python -m pip install ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$(grep '^torch==' requirements.txt)"

COPY pyproject.toml setup.py README.md LICENSE LICENSE-texts ./
COPY helpers helpers
COPY eleven_steps eleven_steps
COPY data data
COPY tools tools
COPY docs docs
COPY notebooks notebooks
RUN python -m pip install -c constraints.txt -r requirements.txt \
    && python -m compileall -q helpers eleven_steps \
    && ln -s /home/learner/work my_notebooks \
    && install -d -o learner -g learner /home/learner/work

# The course belongs to root and is read-only for learners; what they do stands in work, JupyterLab's
# settings too: they outlive the container, and all else may be read-only.
USER learner
ENV HOME=/home/learner/work ELEVEN_STEPS_PROGRESS=/home/learner/work/progress.json PIP_NO_INDEX=1
VOLUME /home/learner/work
EXPOSE 8888
CMD ["python", "tools/lab.py", "--ip=0.0.0.0", "--port=8888", "--no-browser"]
