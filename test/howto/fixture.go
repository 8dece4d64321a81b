package howto

import (
	"regexp"
	"strings"
)

// Played are pages that show one session from its first line to its last. They are not typed line by line, but as they are.
func Played() []string { return []string{"docs/tutorial.md"} }

// Placeholders are arguments in documented lines that a reader replaces, and what the tests put there.
func Placeholders() map[string]string {
	return map[string]string{}
}

// Given is what a documented line needs beyond the jobs, the namespaces and the contexts that it names, which are made for it.
type Given struct {
	// Match finds the lines.
	Match *regexp.Regexp
	// Do is run in a shell before each of them, in the same namespace. $GANGCTL_STATE is the directory that all lines share.
	Do string
}

// Fixtures are all of them. To have a line run that needs something else, add it here.
func Fixtures() []Given {
	g := func(match, do string) Given { return Given{regexp.MustCompile(match), do} }
	return []Given{
		g(`--from |snapshot`, `test -f state.json || gangctl why-pending --save state.json >/dev/null; cp -n state.json cluster.json; cp -n state.json cluster.yaml; gzip -kf cluster.json state.json`),
		g(`--save state\.json`, `rm -f state.json`), // it writes over nothing
		g(`--save cluster\.yaml`, `rm -f cluster.yaml`),
		g(`--save llama\.yaml\.gz`, `rm -f llama.yaml.gz`),
		g(`(?:-f|--config-file|--template) \S+\.yaml`, `for f in job.yaml train.yaml; do cat > $f <<END
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: from-a-file}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - {name: tensorflow, image: tf-benchmarks, resources: {limits: {nvidia.com/gpu: 1}}}
END
done
{ cat job.yaml; echo ---; sed s/from-a-file/another/ job.yaml; } > jobs.yaml`),
		g(`gangctl uninstall`, `gangctl install scheduler --image gangctl:local --timeout 60s >/dev/null 2>&1
gangctl list -A --no-headers | while read namespace name rest; do gangctl delete $name -n $namespace --wait=false >/dev/null; done
until gangctl uninstall --dry-run=server >/dev/null 2>&1; do sleep 0.3; done`),
		g(`completion (bash|fish) > `, `mkdir -p ~/.local/share/bash-completion/completions ~/.config/fish/completions`),
		g(`gangctl/templates/|--template ours`, `mkdir -p ~/.config/gangctl/templates && gangctl submit templates show all-reduce > ~/.config/gangctl/templates/ours.yaml`),
		g(`use-profile|--profile`, `for p in big prod team; do gangctl config set gpus 8 --profile $p >/dev/null; done`),
		g(`config (unset|path)`, `gangctl config set image tf-benchmarks >/dev/null && gangctl config set gpus 8 --profile big >/dev/null && gangctl config use-profile big >/dev/null`),
	}
}

// Codes are the exit codes that are fine apart from 0: an answer, not a failure.
func Codes(c Command) []int {
	switch {
	case c.Verb == "why-pending", c.Flags["dry-run"] == "fit", c.Verb == "fit", strings.HasPrefix(c.Verb, "fit "):
		return []int{3, 4, 5, 6, 7, 8, 9} // the verdict
	case c.Verb == "check":
		return []int{5} // the sandbox lacks what a cluster has
	case c.Verb == "attach", c.Verb == "port-forward":
		return []int{1} // the sandbox simulates containers, and reports that
	}
	return nil
}

// Filled is a line with its placeholders replaced.
func Filled(line string) string {
	for name, value := range Placeholders() {
		line = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(line, value)
	}
	return line
}
