# On a machine with AMD GPUs:
#   docker build -t labkit .
#   docker run -it --rm --network=host --device=/dev/kfd --device=/dev/dri \
#       --group-add video --group-add "$(getent group render | cut -d: -f3)" --shm-size 8G labkit
# On a laptop, with the emulated chip:
#   docker build -t labkit --build-arg BASE=python:3.11-slim .
#   docker run -it --rm --network=host labkit
# Jupyter listens on 127.0.0.1 and prints an address with a token. Without --network=host, let it
# listen inside the container only as far as a published port of this machine:
#   docker run -it --rm -p 127.0.0.1:8888:8888 -e LABKIT_JUPYTER_IP=0.0.0.0 labkit
# JUPYTER_TOKEN=... sets the token. The tag below has torch 2.10 and Triton 3.6.
ARG BASE=rocm/pytorch:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.10.0
FROM ${BASE}

USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --shell /bin/bash learner
WORKDIR /home/learner/labkit
RUN chown learner:learner .

USER learner
# The packages first: this layer stays when only labkit or a lesson changes.
COPY --chown=learner:learner pyproject.toml constraints.txt README.md LICENSE Makefile ./
COPY --chown=learner:learner tools/setup.sh tools/
COPY --chown=learner:learner labkit/__init__.py labkit/
RUN make setup
COPY --chown=learner:learner . .

ENV LABKIT_JUPYTER_IP=127.0.0.1
EXPOSE 8888
CMD ["sh", "-c", "exec .venv/bin/python -m jupyterlab --no-browser --ip=\"$LABKIT_JUPYTER_IP\" --notebook-dir=notebooks"]
