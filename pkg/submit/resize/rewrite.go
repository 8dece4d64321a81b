package resize

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// rewrite changes values in the pods that gangctl wrote for the size that the job had. The operators of other kinds write theirs when
// they make pods.
func rewrite(g *gang.Gang, spec *whatif.Spec) {
	c := indexed(g, spec)
	if c == nil {
		return
	}
	was, is := g.Roles[0], spec.Roles[0]
	from := render.IndexedSize{Members: was.Replicas, Devices: whatif.Devices(was)}
	to := render.IndexedSize{Members: is.Replicas, Devices: whatif.Devices(is)}
	render.ResizeIndexed(c, g.Meta.Namespace, g.Meta.Name, from, to)
}

// indexed is the container in which gangctl writes such values; nil if it writes none.
func indexed(g *gang.Gang, spec *whatif.Spec) *corev1.Container {
	if g.Kind.Group != batchv1.GroupName || len(g.Roles) != 1 {
		return nil
	}
	was, is := g.Roles[0], &spec.Roles[0]
	i := is.MainContainer()
	if i < 0 || max(was.Replicas, is.Replicas) > MaxReplicas { // of which nothing was written: it would be as long as they are many
		return nil
	}
	return &is.Template.Spec.Containers[i]
}

// derived are the variables that are right for the size that the job will have: the operator of a kind sets them for every member when it makes it,
// whatever the template has, or they were rewritten.
func derived(g *gang.Gang, spec *whatif.Spec) []string {
	if c := indexed(g, spec); c != nil {
		is := spec.Roles[0]
		return render.IndexedSets(c, g.Meta.Namespace, g.Meta.Name, render.IndexedSize{Members: is.Replicas, Devices: whatif.Devices(is)})
	}
	switch g.Kind.Kind {
	case "TFJob":
		return render.TFJob().Sets(render.Spec{Roles: []render.Role{{Replicas: 2}}})
	case "PyTorchJob":
		return render.PyTorchJob().Sets(render.Spec{})
	}
	return nil
}

var (
	// countName is a variable that holds how many members, devices or processes there are.
	countName = regexp.MustCompile(`(?i)(world_?size|n_?nodes|num_?(nodes|workers|machines|hosts|gpus|proc(esse)?s|tasks|replicas)|n_?(workers|proc|tasks|gpus)|(gpus|proc|tasks|slots)_per_(node|worker)|_size|_count|replicas|min_?members?)$`)
	// countFlag is an argument that does, with the value behind it or behind an equals sign.
	countFlag = regexp.MustCompile(`^--?(np|n|N|nnodes|nproc[-_]per[-_]node|num[-_](nodes|workers|machines|hosts|gpus|proc(esse)?s|tasks)|world[-_]size|workers|gpus|replicas)(=(.*))?$`)
)

// stale are values in the pods, written by hand, that were right for the size that the job had, and stay: a sentence each. A number that
// is neither that of members before, nor of devices or processes, is about something else.
func stale(g *gang.Gang, spec *whatif.Spec) []string {
	counts := changedCounts(g, spec)
	if len(counts) == 0 {
		return nil
	}
	var texts []string
	right := derived(g, spec)
	for r, role := range spec.Roles {
		was := slices.Concat(g.Roles[r].Template.Spec.InitContainers, g.Roles[r].Template.Spec.Containers)
		for i, c := range slices.Concat(role.Template.Spec.InitContainers, role.Template.Spec.Containers) {
			for _, found := range append(staleEnv(was[i], c, counts, right), staleArgs(c, counts)...) {
				texts = append(texts, fmt.Sprintf("%s of container %s of role %s stays as it was written for the size before", found, c.Name, strings.ToLower(role.Name)))
			}
		}
	}
	return texts
}

// changedCounts are numbers about the job's size that it will not have any more.
func changedCounts(g *gang.Gang, spec *whatif.Spec) map[string]bool {
	before, after := countsOf(g.Roles), countsOf(spec.Roles)
	stale := map[string]bool{}
	for i, n := range before {
		if n != after[i] {
			stale[strconv.FormatInt(n, 10)] = true
		}
	}
	return stale
}

// countsOf are the numbers about the size of a job that programs are configured with: all members and their devices, those of each role, and the
// members besides the first.
func countsOf(roles []gang.Role) []int64 {
	var members, devices int64
	var each []int64
	for _, r := range roles {
		n, d := int64(r.Replicas), whatif.Devices(r)
		members, devices = members+n, devices+n*d
		each = append(each, n, d, n*d)
	}
	return append(each, members, devices, members-1)
}

// staleEnv looks through the variables that are not rewritten.
func staleEnv(was, c corev1.Container, counts map[string]bool, derived []string) []string {
	var found []string
	for _, e := range c.Env {
		counted := counts[e.Value] && countName.MatchString(e.Name) || e.Name == "TF_CONFIG" && strings.Contains(e.Value, `"cluster"`)
		stays := slices.ContainsFunc(was.Env, func(w corev1.EnvVar) bool { return w.Name == e.Name && w.Value == e.Value })
		if counted && stays && !slices.Contains(derived, e.Name) {
			found = append(found, "variable "+e.Name)
		}
	}
	return found
}

// staleArgs looks through the command, and through scripts in it.
func staleArgs(c corev1.Container, counts map[string]bool) []string {
	var found []string
	argv := strings.Fields(strings.Join(slices.Concat(c.Command, c.Args), " "))
	for i, arg := range argv {
		match := countFlag.FindStringSubmatch(arg)
		if match == nil {
			continue
		}
		value := match[len(match)-1]
		if !strings.Contains(arg, "=") && i+1 < len(argv) {
			value = argv[i+1]
		}
		if counts[value] {
			found = append(found, "argument "+strings.SplitN(arg, "=", 2)[0]+" "+value)
		}
	}
	return found
}
