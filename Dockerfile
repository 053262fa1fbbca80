# docker build -t socratic-runner .                      the command, and nothing else
# docker build -t socratic-runner:full --target full .   with extras, by default all: --build-arg EXTRAS="ui ..."
# docker build -t socratic-tests --target tests .        the test suite with all that it needs
# docker/ and docs/docker.md say more. Any builder will do: BuildKit, and the one that was before it.

ARG BASE_IMAGE=python:3.12-slim


# Third-party packages under /opt/socratic-runner, cut down and compiled. Depends on requirements.txt.
FROM ${BASE_IMAGE} AS packages
ENV PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY requirements.txt ./
RUN python -m pip install --quiet --require-hashes --only-binary=:all: --no-deps --no-compile \
        --target /root-fs/opt/socratic-runner/lib/python3.12/site-packages -r requirements.txt
COPY docker/trim.py docker/compile.py docker/layout.sh ./
RUN sh layout.sh /root-fs


# The program itself. Depends on its source.
FROM packages AS program
WORKDIR /program/opt/socratic-runner/lib/python3.12/site-packages
COPY cli ./socratic_runner
COPY socratic_bench ./socratic_bench
ARG SOURCE_DATE_EPOCH=315532800
RUN python /build/compile.py /program \
    && chmod -R u=rwX,go=rX /program \
    && find /program -exec touch -h -d "@${SOURCE_DATE_EPOCH}" {} +


# moto's server, which stands in for S3 where there is no account.
FROM ${BASE_IMAGE} AS moto
ENV PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY requirements-dev.txt docker/closure.py ./
RUN python closure.py requirements-dev.txt moto > moto.txt \
    && python -m pip install --quiet --require-hashes --only-binary=:all: --no-deps -r moto.txt

FROM moto AS s3
COPY docker/bucket.py ./
RUN chmod -R u=rwX,go=rX /build
USER 10001:10001
ENV HOME=/tmp
EXPOSE 5000
ENTRYPOINT ["python", "-m", "moto.server"]
CMD ["-H", "0.0.0.0", "-p", "5000"]


# The test suite. Everything that is pinned, then the source. It starts thousands of processes on a
# file system that takes no bytecode, and the base comes without, so it is compiled here.
FROM moto AS tests
COPY docker/compile.py requirements.txt ./
RUN PYTHONHASHSEED=0 python compile.py / stdlib
RUN python -m pip install --quiet --require-hashes --only-binary=:all: --no-deps \
        -r requirements.txt -r requirements-dev.txt
WORKDIR /src
COPY . .
# Copied files keep the modes that they have on the host, which may be for their owner alone.
RUN chmod -R u=rwX,go=rX /src && python -m compileall -q cli socratic_bench tests
USER 10001:10001
ENV HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis
ENTRYPOINT ["python", "-m", "pytest", "-p", "no:cacheprovider"]
CMD ["-n", "auto", "-q"]


# The packages of the extras, beside those of the program. Depends on their locks.
FROM packages AS extras
COPY requirements-*.txt docker/extras.sh ./
ARG EXTRAS="report stats tables ui"
RUN sh extras.sh /extras ${EXTRAS}


# What both images have.
FROM ${BASE_IMAGE} AS common
# The base brings an installer; nothing is installed here any more. Times are set for equal layers.
RUN cd /usr/local && rm -rf bin/pip* bin/idle* lib/python3*/ensurepip lib/python3*/site-packages/* \
    && touch -d @315532800 bin lib/python3* lib/python3*/site-packages
COPY --from=packages /root-fs/ /
COPY --from=program /program/ /
ENV PATH=/opt/socratic-runner/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/home/runner RUNNER_IN_IMAGE=1
USER 10001:10001
WORKDIR /work
# -I: neither PYTHON* variables nor a mounted work folder can put other code in the program's place.
ENTRYPOINT ["python", "-I", "-m", "socratic_runner"]
ARG BASE_IMAGE
# As in socratic_bench/version.py; a test holds them equal.
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="socratic-runner" \
      org.opencontainers.image.description="Measures how well a language model on Amazon Bedrock keeps to the Socratic method" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"


# The command with extras; docs/docker.md says what each is for.
FROM common AS full
COPY --from=extras /extras/ /


# The last stage is what is built by default.
FROM common AS runner
