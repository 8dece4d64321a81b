package howto

import (
	"regexp"
	"strings"
)

// Exception is a set of documented lines that tests do not type as they stand.
type Exception struct {
	// Match finds them.
	Match *regexp.Regexp
	// Instead is what is typed: a replacement with Match's groups, as of [regexp.Regexp.ReplaceAllString]. Empty is nothing.
	Instead string
	// Reason is why.
	Reason string
}

// Exceptions are all of them, the first that matches counts. This is the one place: a line that is not here is run as it is written.
func Exceptions() []Exception {
	e := func(match, instead, reason string) Exception {
		return Exception{regexp.MustCompile(match), instead, reason}
	}
	return []Exception{
		e(`^make (\S+)`, "make -n -C $$ROOT $1", "takes minutes, or is what runs this test; that there is such a target, and what it would do, is seen"),
		e(`(.*)gangctl-sandbox down`, "${1}gangctl-sandbox status", "would end the sandbox in which all lines are typed; the tutorial's is ended by the test that plays it"),
		e(`^gangctl scheduler .*`, "gangctl scheduler --help", "is what the image runs; test/e2e does, and install scheduler --serve has it done in a cluster"),
		e(`^gangctl install images.*`, "gangctl install images --help", "lists the images of a release, and a build that is none has none; pkg/cmd/install tests the list"),
		e(`^gangctl install scheduler.* --registry .*`, "gangctl install scheduler --image registry.example.com/ml/gangctl:v1.2.3 --image-pull-secret mirror --ha --export",
			"a build that is no release has no image in a registry; pkg/cmd/install tests the names"),
		e(`^gangctl install scheduler((?: --serve \S+| --export| --diff)*)( > \S+)?$`, "gangctl install scheduler$1 --image gangctl:local$2", "the same; pods of this image run in the sandbox"),
		e(`^gangctl install operator(?: --(?:image|gang-scheduler) \S+)*(?: --diff| --yes)*$`, "gangctl install operator --export",
			"the sandbox's operator is no Deployment, and has what this would take over; test/e2e installs one"),
		e(`^gangctl uninstall --delete-crds$`, "gangctl uninstall --delete-crds --confirm podgroups.scheduling.x-k8s.io", "asks somebody to type the name"),
		e(`^gangctl attach (\S+)$`, "gangctl attach $1 -- nvidia-smi", "opens a shell, which needs a terminal"),
		e(`^gangctl resize raycluster/(\S+) --replicas \S+$`, "gangctl resize --help", "needs the operator of KubeRay, which the sandbox has not; test/e2e runs it"),
		e(`^gangctl resize (\S+)((?: --[a-z]+ \d+)*)$`, "gangctl resize $1 --workers 3 --dry-run=client", "fits, or does not, by what else is typed; test/e2e does it"),
		e(`^gangctl resize (\S+) --abort$`, "gangctl resize $1 --help", "takes back what was interrupted; pkg/cmd/resize tests it"),
		e(`^gangctl why-pending (\S+) --apply \d+$`, "gangctl why-pending $1", "needs a confirmation; test/e2e does it"),
		e(`^(?:gangctl (?:submit -f lws\.yaml|why-pending lws/.*)|kubectl scale lws/.*)$`, "gangctl submit --help", "needs the controller of LeaderWorkerSet, which the sandbox has not; test/e2e runs it"),
		e(`^gangctl (?:submit -f jobset\.yaml|why-pending jobset/\S+)$`, "gangctl submit --help", "needs the controller of JobSet, which the sandbox has not; test/e2e runs it"),
		e(`^gangctl (?:submit -f trainjob\.yaml|submit train .*|why-pending trainjob/\S+)$`, "gangctl submit train --help", "needs the controller of Kubeflow Trainer, which the sandbox has not; test/e2e runs it"),
		e(`^gangctl top node --by topology\.\S+$`, "gangctl top node --by kubernetes.io/arch", "the sandbox's nodes are in no zone"),
		e(`^gangctl submit (.*--topology.*)$`, "gangctl submit --dry-run=client $1", "the sandbox's nodes are in no zone; test/e2e places gangs in racks"),
		e(`^gangctl fit (.*--topology.*)$`, "gangctl fit --help", "the sandbox's nodes are in no zone; test/e2e places gangs in racks"),
		e(`^gangctl submit (.*--queue research.*)$`, "gangctl submit --dry-run=client $1", "needs Kueue, which the sandbox has not; test/e2e runs it"),
		e(`^gangctl (?:submit -f rayjob\.yaml|why-pending rayjob/\S+)$`, "gangctl submit --help", "needs the operator of KubeRay, which the sandbox has not; test/e2e runs it"),
		e(`^gangctl submit ray (.*)$`, "gangctl submit ray --dry-run=client $1", "needs the operator of KubeRay, which the sandbox has not; test/e2e runs it"),
		e(`^gangctl completion powershell.*`, "gangctl completion powershell", "is for PowerShell"),
		e(`^gangctl completion fish \| source`, "gangctl completion fish", "is for fish; test/shell loads the script there"),
		e(`^(?:export PATH=|source <)`, "", "is for the shell that it is typed into; test/shell loads the scripts"),
	}
}

// Typed is what a test types for a line; it is empty with the reason for a line that is not run.
func Typed(text string) (typed, reason string) {
	for _, e := range Exceptions() {
		if e.Match.MatchString(text) {
			return strings.TrimSpace(e.Match.ReplaceAllString(e.Match.FindString(text), e.Instead)), e.Reason
		}
	}
	return text, ""
}
