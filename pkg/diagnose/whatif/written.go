package whatif

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Written are the steps of a JSON patch that change the roles in the object of a job, of a kind that writes its roles itself. Only what differs is
// in them: what this program does not know of the object stays.
func Written(g *gang.Gang, object *unstructured.Unstructured, spec *Spec) ([]command.Patch, error) {
	before, after := object.DeepCopy(), object.DeepCopy()
	g.Reader.WriteRoles(before, g.Roles)
	g.Reader.WriteRoles(after, spec.Roles)
	all, err := command.Diff("", before.Object, after.Object)
	if err != nil {
		return nil, err
	}
	var steps []command.Patch
	for _, step := range all {
		step = fitting(step, object.Object, after.Object)
		same := func(other command.Patch) bool { return other.Path == step.Path }
		if step.Path != "" && !slices.ContainsFunc(steps, same) {
			steps = append(steps, step)
		}
	}
	return steps, nil
}

// fitting is a step for an object that may lack what the step is in: what is missing is added whole, as it is afterwards. A step that removes what is
// not there has no path.
func fitting(step command.Patch, object, after map[string]any) command.Patch {
	missing, ok := firstMissing(object, step.Path)
	switch {
	case !ok:
		return step
	case step.Op == "remove":
		return command.Patch{}
	}
	value, _ := at(after, missing)
	return command.Patch{Op: "add", Path: missing, Value: value}
}

// firstMissing is the shortest part of a JSON pointer that leads to nothing in a value; ok is false where all of it leads to something.
func firstMissing(value any, pointer string) (missing string, ok bool) {
	for _, part := range strings.Split(pointer, "/")[1:] {
		missing += "/" + part
		if value, ok = child(value, part); !ok {
			return missing, true
		}
	}
	return "", false
}

// at is what a JSON pointer leads to.
func at(value any, pointer string) (any, bool) {
	ok := true
	for _, part := range strings.Split(pointer, "/")[1:] {
		if value, ok = child(value, part); !ok {
			return nil, false
		}
	}
	return value, true
}

// child is what one part of a JSON pointer leads to.
func child(value any, part string) (any, bool) {
	switch value := value.(type) {
	case map[string]any:
		found, ok := value[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		return found, ok && found != nil
	case []any:
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(value) {
			return value[i], true
		}
	}
	return nil, false
}
