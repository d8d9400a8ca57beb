# Everything a developer runs. Python 3.13 and make are enough; each target sets up what it needs.
.DEFAULT_GOAL := help
.PHONY: help setup browser prometheus check docs references audit sbom release test coverage test-cluster test-localstack test-long test-upgrade localstack localstack-down demo demo-gpu screenshots build deploy clean
# `sam build` looks for python3.13 on PATH: the environment's own comes first.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export SAM_CLI_TELEMETRY := 0
export __SAM_CLI_APP_DIR := $(CURDIR)/.tools/sam-home

VENV      := .venv/.ready
SAM       := .tools/sam/.ready
MINISTACK := .tools/ministack/.ready
SUPPLY    := .tools/supply/.ready
DOCS      := .tools/docs/.ready
OIDC      := .tools/oidc/.ready
HADOLINT  := .tools/hadolint/.ready
LOCALSTACK := .tools/localstack/.plugin
BUILT     := .aws-sam/build/template.yaml
SERVICE   := .aws-sam/service/build/template.yaml
BATCH     := .aws-sam/batch/build/template.yaml
# Servers that keep their own time on a machine that is not theirs alone: what fails must fail twice.
AGAIN     := --reruns 1 --reruns-delay 5 --rerun-show-tracebacks
# In the order of tests/conftest.py, which also says what stays together.
BY_MODULE := --dist loadfile --no-loadscope-reorder
# Else each worker, and each command that a test starts, compiles every module anew.
COMPILED  := env -u PYTHONDONTWRITEBYTECODE
# Without these pip first fetches this machine's wheels, and SAM the right ones without their hashes.
FOR_LAMBDA := PIP_PLATFORM=manylinux2014_aarch64 PIP_ONLY_BINARY=:all:
# What holds on older Kubernetes too; the simulated cluster follows the default alone.
ON_OLDER  := .venv/bin/pytest -n 2 $(BY_MODULE) -m "cluster and not long" $(AGAIN) tests/differential/test_scheduler.py \
	$(patsubst %,tests/cluster/test_%.py,controlplane controlplane_volumes drain injection jobs preemption queues rights rights_of_actions)
# The AWS services that functions call. boto3 describes four hundred others: half of the core layer, by size and by files.
SERVICES_OF_AWS := arc-zonal-shift autoscaling dynamodb ec2 eks events kms pricing s3 secretsmanager service-quotas sns sqs sts
PLUGIN    := $(wildcard infra/local/localstack/plugin/plimsoll_localstack/*.py) infra/local/localstack/plugin/pyproject.toml
# Not LocalStack's: its versions are held back, and it runs on loopback only.
LOCKS     := requirements.lock $(wildcard layers/*/requirements.txt infra/local/*.lock infra/local/oidc/*.lock)
SOURCES   := $(shell find functions layers -name "*.py" -o -name "*.json" -o -name "*.csv" -o -name "*.j2" -o -name "*.css" -o -name "*.js" -o -name requirements.txt)

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

setup: $(VENV) $(SAM) $(MINISTACK) $(OIDC) ## Install everything into .venv and .tools (the other targets do it by themselves)

browser: ## Find the browser that some tests drive, or install Debian's (as root; else it says how)
	@infra/local/browser.sh

prometheus: ## Find the Prometheus that runs the queries of the boards, or unpack Debian's into .tools
	@infra/local/prometheus.sh

check: $(VENV) $(SAM) $(HADOLINT) docs ## Lint, types, order of imports, templates, Terraform, image, site
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/pytest -q tests/package/test_terraform.py
	AWS_DEFAULT_REGION=us-east-1 .tools/sam/bin/sam validate --lint
	.tools/sam/bin/cfn-lint --regions us-east-1 cn-north-1 us-gov-west-1 -- template.yaml service.yaml batch.yaml infra/spoke.yaml infra/reports.yaml
	.tools/hadolint/bin/hadolint infra/agent/Containerfile

docs: $(DOCS) ## Build the site of the pages into .site; a link that leads nowhere fails
	NO_MKDOCS_2_WARNING=1 .tools/docs/bin/mkdocs build --strict --quiet

references: $(VENV) ## Write the pages under docs/reference and the boards of Grafana anew, from the code
	.venv/bin/python -m plimsoll_cli.references
	.venv/bin/python -m infra.grafana

test: $(VENV) $(MINISTACK) $(OIDC) $(BUILT) $(SERVICE) $(BATCH) ## Run every test
	$(COMPILED) .venv/bin/pytest -n 2 $(BY_MODULE) -m "not cluster and not long and not localstack" --ignore=tests/cluster --ignore=tests/localstack

coverage: ## Run every test, and print which lines and branches none of them reached (twice as long)
	PYTEST_ADDOPTS="--cov --cov-report=term" $(MAKE) test

test-cluster: $(VENV) $(MINISTACK) $(OIDC) $(BUILT) $(SERVICE) $(BATCH) controlplane karpenter ## Run what needs a real control plane (builds it and Karpenter once, about 15 min), or minutes of waiting
	.venv/bin/pytest -n 3 $(BY_MODULE) -m "cluster and not long and not localstack" $(AGAIN)

test-localstack: $(VENV) $(LOCALSTACK) $(BUILT) controlplane ## Run what needs LocalStack (Java and Maven must be there)
	.venv/bin/pytest -m "localstack and not long" $(AGAIN)

test-long: $(VENV) $(MINISTACK) $(LOCALSTACK) $(BUILT) $(SERVICE) $(BATCH) controlplane karpenter operators jaeger ## Run what takes too long for every change
	@infra/local/prometheus.sh || echo "==> no Prometheus: its tests will be skipped" >&2
	HYPOTHESIS_PROFILE=long .venv/bin/pytest -m "long or drawn"
	PLIMSOLL_KUBERNETES=1.36 $(ON_OLDER)
	PLIMSOLL_KUBERNETES=1.34 $(ON_OLDER)

FROM ?= $(shell git describe --tags --abbrev=0 2>/dev/null)
test-upgrade: $(VENV) controlplane ## Try the functions of another version with this one's manifests, and the reverse (FROM=v0.2.0)
	@infra/local/upgrade.sh "$(or $(FROM),$(error no version is tagged here: say FROM=COMMIT))"

# Standard output is one line for a shell: eval "$(make cluster)"
cluster: ## Start a real Kubernetes control plane in the background (builds it once, about 10 min)
	@$(MAKE) --no-print-directory $(VENV) >&2
	@.venv/bin/plimsoll controlplane up

cluster-down: $(VENV) ## Stop it
	@.venv/bin/plimsoll controlplane down

controlplane: $(VENV)
	@.venv/bin/plimsoll controlplane build >&2

# Built before the tests: beside them, the build would delay those that measure seconds.
karpenter: $(VENV)
	@.venv/bin/python -m plimsoll_testbed.rigs.karpenter

# OPERATORS names those to build; all of them where it is empty.
operators: $(VENV)
	@.venv/bin/python -m plimsoll_testbed.rigs.operators $(OPERATORS)

jaeger: $(VENV)
	@.venv/bin/python -m plimsoll_testbed.rigs.jaeger

# Standard output is lines for a shell: eval "$(make localstack)"
localstack: ## Start LocalStack in the background, with the built template deployed to it
	@$(MAKE) --no-print-directory $(VENV) $(BUILT) >&2
	@docker info >/dev/null 2>&1 || $(MAKE) --no-print-directory $(LOCALSTACK) >&2
	@.venv/bin/python -m plimsoll_testbed.rigs.localstack up

localstack-down: $(VENV) ## Stop it
	@.venv/bin/python -m plimsoll_testbed.rigs.localstack down

OF ?= interruption
NEEDS_interruption := $(MINISTACK) $(BUILT)
NEEDS_service := $(MINISTACK) $(SERVICE)
NEEDS_batch := controlplane operators
NEEDS_gpu := controlplane
demo: OPERATORS := jobset
demo: $(VENV) $(NEEDS_$(OF)) ## Watch every spot instance go at once, on a deployed stack (OF=service, batch or gpu: the other demos)
	.venv/bin/plimsoll demo $(OF)

demo-gpu: ## Watch a fleet of GPUs being audited, sized and split
	@$(MAKE) --no-print-directory demo OF=gpu

screenshots: $(VENV) browser ## Take the pictures of the console for the pages anew
	.venv/bin/python infra/local/screenshots.py docs/images

audit: $(SUPPLY) ## Ask PyPI for known vulnerabilities in everything that a lock of ours names
	@for lock in $(LOCKS); do echo "==> $$lock"; .tools/supply/bin/pip-audit --strict --progress-spinner off --disable-pip --require-hashes -r $$lock || exit 1; done

sbom: $(BUILT) $(SUPPLY) ## List what is deployed (CycloneDX), with its licences, beside the built template
	cat layers/*/requirements.txt | .tools/supply/bin/cyclonedx-py requirements --output-reproducible -o .aws-sam/sbom.json -
	.venv/bin/python infra/local/notices.py .aws-sam/build/*Layer >.aws-sam/THIRD-PARTY-NOTICES.txt

release: $(VENV) $(SAM) $(SUPPLY) ## Build a release into .release, and print its checksums (KEY=FILE signs them; TAG=yes also sets its tag)
	.venv/bin/python infra/local/release.py $(if $(KEY),--key $(KEY)) $(if $(filter yes,$(TAG)),--tag)

build: $(BUILT) $(SERVICE) $(BATCH) ## Build the functions and layers of all stacks into .aws-sam

deploy: $(BUILT) ## Deploy the built stack to your AWS account (asks before it changes anything)
	.tools/sam/bin/sam deploy $(if $(ENV),--config-env $(ENV))

clean: ## Remove what was built and cached (the environments stay: rm -r .venv .tools)
	rm -rf .aws-sam .release .site .coverage htmlcov .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(VENV): requirements.lock pyproject.toml
	@infra/local/environment.sh .venv requirements.lock -e .

$(SAM): infra/local/sam.lock
	@infra/local/environment.sh .tools/sam infra/local/sam.lock

$(DOCS): infra/local/docs.lock
	@infra/local/environment.sh .tools/docs infra/local/docs.lock

$(MINISTACK): infra/local/ministack.lock
	@infra/local/environment.sh .tools/ministack infra/local/ministack.lock

$(OIDC): infra/local/oidc/install.sh infra/local/oidc/package-lock.json infra/local/oidc/provider.mjs infra/local/oidc/node.lock
	@infra/local/oidc/install.sh

$(SUPPLY): infra/local/supply.lock
	@infra/local/environment.sh .tools/supply infra/local/supply.lock

$(HADOLINT): infra/local/hadolint.lock
	@infra/local/environment.sh .tools/hadolint infra/local/hadolint.lock

$(LOCALSTACK): infra/local/localstack/install.sh infra/local/localstack/localstack.lock infra/local/localstack/dynamodb.sha256 infra/local/localstack/pom.xml $(PLUGIN)
	@infra/local/localstack/install.sh

# After `sam build` into the folder $(1): remove what no function reads, and add the decoder's build for this machine to
# that for Lambda, because rigs and tests run here what is built.
define FINISH
@rm -rf $(1)/*Layer/python/requirements.* $(1)/*Layer/python/*.data
@find $(1)/CoreLayer/python/botocore/data -mindepth 1 -maxdepth 1 -type d $(SERVICES_OF_AWS:%=! -name %) -exec rm -r {} +
@cp .venv/lib/python3.13/site-packages/msgspec/_core.*.so $(1)/CoreLayer/python/msgspec/
endef

# Lambda cannot store what it compiles.
define COMPILE
@echo "==> compiling the modules in $(1)"
@.venv/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash -s $(1) $(1)
@touch $@
endef

$(BUILT): $(VENV) $(SAM) template.yaml samconfig.toml $(SOURCES)
	$(FOR_LAMBDA) .tools/sam/bin/sam build
	$(call FINISH,.aws-sam/build)
	$(call COMPILE,.aws-sam/build)
	@echo "==> layers, unpacked (Lambda allows 250 MB for a function and its layers)"
	@du -sm .aws-sam/build/*Layer | sed 's/\t/ MB  /'

$(SERVICE): $(VENV) $(SAM) service.yaml samconfig.toml layers/service/Makefile layers/console/Makefile $(SOURCES)
	$(FOR_LAMBDA) .tools/sam/bin/sam build --template service.yaml --build-dir .aws-sam/service/build --cache-dir .aws-sam/service/cache
	$(call FINISH,.aws-sam/service/build)
	@cp .venv/lib/python3.13/site-packages/_cffi_backend.*.so .aws-sam/service/build/ServiceLayer/python/
	@cp .venv/lib/python3.13/site-packages/cryptography/hazmat/bindings/_rust.abi3.so .aws-sam/service/build/ServiceLayer/python/cryptography/hazmat/bindings/_rust.$$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))').so
	$(call COMPILE,.aws-sam/service/build)

$(BATCH): $(VENV) $(SAM) batch.yaml samconfig.toml $(SOURCES)
	$(FOR_LAMBDA) .tools/sam/bin/sam build --template batch.yaml --build-dir .aws-sam/batch/build --cache-dir .aws-sam/batch/cache
	$(call FINISH,.aws-sam/batch/build)
	@cp .venv/lib/python3.13/site-packages/pydantic_core/_pydantic_core.*.so .aws-sam/batch/build/BatchLayer/python/pydantic_core/
	$(call COMPILE,.aws-sam/batch/build)
