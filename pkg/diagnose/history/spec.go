package history

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// roles are what the spec asks for.
func roles(g *gang.Gang) []Role {
	all := make([]Role, 0, len(g.Roles))
	for _, r := range g.Roles {
		role := Role{Name: strings.ToLower(r.Name), Replicas: r.Replicas, Requests: request.Of(r.Template.Spec)}
		for _, c := range r.Template.Spec.Containers {
			if c.Name == r.Main {
				role.Image, role.Command = c.Image, slices.Concat(c.Command, c.Args)
			}
		}
		all = append(all, role)
	}
	return all
}

// hidden stands for the value of an environment variable: a report is passed on to people who may not read the job.
const hidden = "…"

// masked is the command line that submitted a job, without the values of environment variables.
func masked(annotations map[string]string) string {
	line := annotations[provenance.CommandAnnotation]
	words, err := shell.Split(line)
	if err != nil {
		return "" // nothing that gangctl wrote: what it holds is not known
	}
	for i, word := range words {
		name, value, joined := strings.Cut(word, "=")
		switch {
		case word == "--":
			return shell.Join(words...)
		case name == "--env" && joined:
			words[i] = name + "=" + withoutValue(value)
		case word == "--env" && i+1 < len(words):
			words[i+1] = withoutValue(words[i+1])
		}
	}
	return shell.Join(words...)
}

func withoutValue(variable string) string {
	name, _, _ := strings.Cut(variable, "=")
	return name + "=" + hidden
}

// devices is how many GPUs a pod asks for.
func devices(spec corev1.PodSpec) int64 { return request.GPUs(request.Of(spec)) }
