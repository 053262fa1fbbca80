# docker build -t socratic-runner .                      the command, and nothing else
# docker build -t socratic-runner:full --target full .   with extras, by default all but dashboard: --build-arg EXTRAS="ui ..."
# docker build -t socratic-tests --target tests .        the test suite with all that it needs
# docs/docker.md says more. BuildKit builds this file, and so does the older builder.
#
# Reproducible layers: PYTHONHASHSEED fixes the order inside sets, which bytecode contains; modes and
# times of copied files are set to fixed values.

ARG BASE_IMAGE=python:3.12-slim


FROM ${BASE_IMAGE} AS pip
ENV PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore LIB=/usr/local/lib/python3.12
WORKDIR /build


# Third-party packages. Of the SDK's descriptions of every AWS service only those stay that runs, the
# doctor and credential providers use; nothing looks up time zones in dateutil's archive of them.
# Depends on requirements.txt.
FROM pip AS packages
COPY requirements.txt ./
RUN python -m pip install --quiet --require-hashes --only-binary=:all: --no-deps --no-compile \
        --target /root-fs$LIB/site-packages -r requirements.txt
RUN cd /root-fs$LIB/site-packages \
    && rm -rf bin boto3/data boto3/examples *.dist-info/RECORD dateutil/zoneinfo/*.tar.gz \
    && find botocore/data -mindepth 1 -maxdepth 1 -type d | grep -vE \
        '/(bedrock|bedrock-runtime|s3|service-quotas|signin|sso|sso-oidc|sts)$' | xargs rm -r \
    && python -m compileall -q --invalidation-mode unchecked-hash -s /root-fs -p / $PWD
# The base has no bytecode. Python writes it for the modules that are imported here: those of a run.
RUN PYTHONDONTWRITEBYTECODE= PYTHONPATH=/root-fs$LIB/site-packages python -c \
        "import argparse, ctypes, difflib, http.server, statistics, tomllib, zoneinfo, boto3; boto3.client('s3')" \
    && find $LIB -path $LIB/site-packages -prune -o -name '*.pyc' -exec cp --parents -t /root-fs {} + \
    && chmod -R u=rwX,go=rX /root-fs && find /root-fs -exec touch -h -d @315532800 {} +


# The program itself. Depends on its source.
FROM packages AS program
COPY cli /program$LIB/site-packages/socratic_runner
COPY socratic_bench /program$LIB/site-packages/socratic_bench
ARG SOURCE_DATE_EPOCH=315532800
# These parts need extras, so they are only in images that have some.
ARG PARTS="dashboard tracing studies/formats/inspect_task.py studies/formats/__pycache__/inspect_task.*"
RUN python -m compileall -q --invalidation-mode unchecked-hash -s /program -p / /program \
    && mkdir /parts && cd /program && cp --parents -r -t /parts $(cd /program && for part in $PARTS; do \
        echo ./$LIB/site-packages/socratic_bench/$part; done) \
    && rm -r $(for part in $PARTS; do echo ./$LIB/site-packages/socratic_bench/$part; done) \
    && chmod -R u=rwX,go=rX /program /parts \
    && find /program /parts -exec touch -h -d "@${SOURCE_DATE_EPOCH}" {} +


# moto's server, which stands in for S3 where there is no account.
FROM pip AS s3
COPY docker/requirements-s3.txt docker/bucket.py ./
RUN python -m pip install --quiet --require-hashes --only-binary=:all: --no-deps -r requirements-s3.txt \
    && chmod -R u=rwX,go=rX /build
USER 10001:10001
ENV HOME=/tmp
EXPOSE 5000
ENTRYPOINT ["python", "-m", "moto.server"]
CMD ["-H", "0.0.0.0", "-p", "5000"]


# The test suite. Everything that is pinned, then the source. It starts thousands of processes on a
# file system that takes no bytecode, so all of it is compiled here.
FROM pip AS tests
COPY requirements.txt requirements-dev.txt ./
RUN python -m pip install --quiet --require-hashes --only-binary=:all: --no-deps \
        -r requirements.txt -r requirements-dev.txt \
    && python -m compileall -q -x '/(site-packages|test|lib2to3)/' $LIB
WORKDIR /src
COPY . .
# Copied files keep the modes that they have on the host, which may be for their owner alone.
RUN chmod -R u=rwX,go=rX /src && python -m compileall -q cli socratic_bench tests
USER 10001:10001
ENV HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis
ENTRYPOINT ["python", "-m", "pytest", "-p", "no:cacheprovider"]
CMD ["-n", "auto", "-q"]


# The packages of the extras, beside those of the program, and what they import of the standard
# library. Depends on their locks.
FROM packages AS extras
COPY requirements-*.txt ./
ARG EXTRAS="golden openai optimisation otel report stats tables ui"
RUN python -m pip install --quiet --require-hashes --only-binary=:all: --no-deps --no-compile \
        --target /extras$LIB/site-packages $(printf -- '-r requirements-%s.txt ' ${EXTRAS})
RUN cd /extras$LIB/site-packages \
    && rm -rf bin *.dist-info/RECORD && find . -type d -name tests -prune -exec rm -r {} + \
    && python -m compileall -q --invalidation-mode unchecked-hash -s /extras -p / $PWD \
    && touch /build/compiled \
    && PYTHONDONTWRITEBYTECODE= python -c "import asyncio, colorsys, fileinput, pydoc, unittest" \
    && find $LIB -path $LIB/site-packages -prune -o -name '*.pyc' -newer /build/compiled -exec cp --parents -t /extras {} + \
    && chmod -R u=rwX,go=rX /extras && find /extras -exec touch -h -d @315532800 {} +
COPY --from=program /parts/ /extras/


# What both images have. The base brings an installer and packages; nothing is installed here any
# more. /work can be written by any user, also as a volume that Docker makes.
FROM ${BASE_IMAGE} AS common
RUN cd /usr/local && rm -rf bin/pip* bin/idle* lib/python3*/ensurepip lib/python3*/site-packages/* \
    && echo 'runner:x:10001:10001::/home/runner:/usr/sbin/nologin' >> /etc/passwd \
    && echo 'runner:x:10001:' >> /etc/group \
    && mkdir -m 755 /home/runner && mkdir -m 1777 /work && chown 10001:10001 /home/runner /work \
    && touch -d @315532800 /etc/group /etc/passwd /home/runner /work bin lib/python3* lib/python3*/site-packages
COPY --from=packages /root-fs/ /
COPY --from=program /program/ /
ENV HOME=/home/runner RUNNER_IN_IMAGE=1
USER 10001:10001
WORKDIR /work
# -I: neither PYTHON* variables nor a mounted work folder can put other code in the program's place.
ENTRYPOINT ["python", "-I", "-m", "socratic_runner"]
ARG BASE_IMAGE
# As in socratic_bench/version.py; a test holds them equal.
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="socratic-runner" \
      org.opencontainers.image.description="Measures how long a language model that should tutor by questions keeps asking before it gives answers away" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"


# The command with extras; docs/docker.md says what each is for.
FROM common AS full
COPY --from=extras /extras/ /


# The page over a store: docker compose --profile dashboard up builds it with EXTRAS="dashboard ...".
FROM full AS dashboard
EXPOSE 8500
CMD ["dashboard", "--store", "/work/runs", "--host", "0.0.0.0", "--port", "8500"]


# The last stage is what is built by default.
FROM common AS runner
