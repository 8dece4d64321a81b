package resize

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
)

// Object is an object as it is and as it will be.
type Object struct {
	Before, After *unstructured.Unstructured
}

// Changed reports whether it will be another one.
func (o Object) Changed() bool { return o.Before != nil && !sameContent(o.Before, o.After) }

// Plan is what becomes of a job and of its gang.
type Plan struct {
	Gang *gang.Gang
	// Intent is the change, with what cannot be found out again once it is half done.
	Intent Intent
	// Job is the job; Group is the object that declares its gang, with nothing in it where there is none.
	Job, Group Object
	// Original is the group object as it was before the change began, as far as that is known; nil without one.
	Original *unstructured.Unstructured
	// Restarts reports that the pods have to be made again: the job is suspended until those that it has are gone.
	Restarts bool
	// Launcher reports that the Job in which the MPI Operator runs the launcher has to be made again, too.
	Launcher bool
	// Recreate is why the job cannot be changed in place; "" if it can.
	Recreate string
	// Notes are what the change does not reach, a sentence each.
	Notes []string
}

// Changed reports whether the plan changes anything.
func (p *Plan) Changed() bool { return p.Job.Changed() || p.Group.Changed() }

// Edit is the plan as an edit of what the job specifies.
func (p *Plan) Edit() func(*whatif.Spec) { return p.Intent.Edit(p.Gang) }

// Edit is the change, with the minimum that comes of it, as an edit of what the job of a gang specifies.
func (i Intent) Edit(g *gang.Gang) func(*whatif.Spec) {
	return func(spec *whatif.Spec) {
		i.Change.Edit()(spec)
		spec.Min, spec.Derived = i.Min, i.Derived
		rewrite(g, spec)
	}
}

// RefusedError reports that a job cannot be changed so, however often it is tried.
type RefusedError struct{ Reason string }

// Error implements error.
func (e *RefusedError) Error() string { return e.Reason }

// New plans a change of a gang. job is the object of its job, and group the one that declares the gang, nil without: both whole, as they are
// stored. begun is the change that the job was in the middle of; nil without.
func New(g *gang.Gang, job, group *unstructured.Unstructured, c Change, begun *Intent) (*Plan, error) {
	if err := c.Validate(); err != nil {
		return nil, &RefusedError{err.Error()}
	}
	if problem := cmp.Or(owned(g), c.problem(g, begun != nil)); problem != "" {
		return nil, &RefusedError{problem}
	}
	if problem := c.undeclared(g); problem != "" && begun == nil { // an operator may have deleted the group with the pods: it was there at first
		return nil, &RefusedError{problem}
	}
	p := &Plan{Gang: g, Intent: Intent{Change: c, Min: whatif.Revise(g, c.Edit()).Min, Resume: !g.Suspended}}
	if begun != nil {
		p.Intent = *begun
		p.Intent.Resume = begun.Resume || !g.Suspended // another client has resumed it
	}
	spec := whatif.Revise(g, p.Edit())
	if total := (gang.Job{Roles: spec.Roles}).Total(); p.Intent.Min > total {
		return nil, &RefusedError{fmt.Sprintf("%d members must start together, and it would have %d", p.Intent.Min, total)}
	}
	roles, steps, err := stepsOf(g, job, spec)
	if err != nil {
		return nil, err
	}
	if p.Job, err = patched(job, steps); err != nil {
		return nil, err
	}
	if p.Group, err = Merged(group, whatif.GroupPatch(g, spec)); err != nil {
		return nil, err
	}
	if p.Original = group; begun != nil {
		restored, err := Restored(g, group, *begun)
		if err != nil {
			return nil, err
		}
		p.Original = restored.After
	} else if p.Group.Changed() {
		p.Intent.Was, p.Intent.Derived = whatif.Declares(g.Decl), whatif.DeclaredByOperator(g)
	}
	p.Restarts = restarts(g, roles)
	p.Recreate = fixed(g, roles, steps)
	p.Launcher = g.Kind.Kind == "MPIJob" && g.Kind.Version == "v2beta1" && (slices.ContainsFunc(roles, command.ChangesLauncher) || begun != nil && c.reaches("launcher"))
	p.Notes = stale(g, spec)
	return p, nil
}

// Restored is the group object as it was before a change began; nothing where there is none. Its minimum is at most what the job has now:
// another client may have changed that.
func Restored(g *gang.Gang, group *unstructured.Unstructured, begun Intent) (Object, error) {
	if begun.Was == nil || g.Decl == nil {
		return Merged(group, nil)
	}
	was := *begun.Was
	was.Min = max(1, min(was.Min, g.Total()))
	return Merged(group, whatif.DeclarePatch(g.Decl, was))
}

// stepsOf are what an edit changes of the job: by role, and as one patch of its object.
func stepsOf(g *gang.Gang, job *unstructured.Unstructured, spec *whatif.Spec) (roles []command.RolePatch, steps []command.Patch, err error) {
	roles, further, err := whatif.Steps(g, spec)
	if err != nil {
		return nil, nil, err
	}
	if problem := cmp.Or(elsewhere(g), unwritten(g, spec)); problem != "" {
		return nil, nil, &RefusedError{problem}
	}
	if g.Reader.WriteRoles != nil {
		if steps, err = whatif.Written(g, job, spec); err != nil {
			return nil, nil, err
		}
		after, err := patched(job, steps)
		if err != nil {
			return nil, nil, err
		}
		if problem := misread(g, after.After, spec); problem != "" {
			return nil, nil, &RefusedError{problem}
		}
		return roles, append(steps, further...), nil
	}
	steps, ok := command.Steps(g.Kind, roles, further...)
	if !ok {
		return nil, nil, &RefusedError{unknownVersion(g)}
	}
	return roles, steps, nil
}

// restarts reports whether the pods of a job have to be made again, and it can be suspended for that.
func restarts(g *gang.Gang, roles []command.RolePatch) bool {
	return command.Remakes(g.Kind, roles) && !managed(g) && whatif.Suspends(g.Job, g.ExistingPods())
}

// fixed is why a job cannot be changed where it is; "" if it can, or if only the API server knows.
func fixed(g *gang.Gang, roles []command.RolePatch, steps []command.Patch) string {
	pods := g.ExistingPods()
	switch {
	case (len(pods) > 0 || g.MadeAs != "") && command.Remakes(g.Kind, roles) && !managed(g) && !whatif.Suspends(g.Job, pods):
		return cmp.Or(suspension.Forbidden(g.Object), "its operator is too old to suspend it")
	case command.IsBatch(g.Kind) && slices.ContainsFunc(steps, immutable(g.Count(gang.Running) > 0)):
		return "the pods of a Job cannot be changed like that"
	}
	return fixedByKind(g, steps)
}

// managed reports whether Kueue decides when the job runs: it takes one that has changed back by itself.
func managed(g *gang.Gang) bool {
	_, is := kueue.QueueOf(&g.Meta)
	return is
}

// owned is why the gang is not one job's to change; "" if it is.
func owned(g *gang.Gang) string {
	if g.Maker != nil {
		return fmt.Sprintf("%s makes its pods: change that", g.Maker)
	}
	if g.Bare != nil {
		return "its gang has pods of several owners, or of none"
	}
	if ref := metav1.GetControllerOf(&g.Meta); ref != nil && ref.Kind != "CronJob" {
		return fmt.Sprintf("%s %s made it, and would make it again as it was: change that", ref.Kind, ref.Name)
	}
	return ""
}

// immutable reports whether a step changes what is fixed in the pods of a Job: all but where they may run. What they request can be changed in some
// releases while the Job is suspended: of a Job of which no member runs, the API server decides.
func immutable(running bool) func(command.Patch) bool {
	may := []string{"metadata/labels", "metadata/annotations", "spec/nodeSelector", "spec/tolerations", "spec/affinity", "spec/schedulingGates"}
	return func(step command.Patch) bool {
		rest, ok := strings.CutPrefix(step.Path, "/spec/template/")
		if !ok || !running && strings.HasPrefix(rest, "spec/containers/") && strings.Contains(rest, "/resources") {
			return false
		}
		return !slices.ContainsFunc(may, func(prefix string) bool { return strings.HasPrefix(rest, prefix) })
	}
}

// patched is an object after a JSON patch.
func patched(object *unstructured.Unstructured, steps []command.Patch) (Object, error) {
	return changed(object, steps, func(before, patch []byte) ([]byte, error) {
		decoded, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, err
		}
		options := jsonpatch.NewApplyOptions()
		options.EnsurePathExistsOnAdd = true
		return decoded.ApplyWithOptions(before, options)
	})
}

// Merged is an object after a merge patch; empty for no object.
func Merged(object *unstructured.Unstructured, patch map[string]any) (Object, error) {
	if object == nil {
		return Object{}, nil
	}
	if patch == nil {
		return Object{Before: object, After: object}, nil
	}
	return changed(object, patch, jsonpatch.MergePatch)
}

func changed(object *unstructured.Unstructured, patch any, apply func(before, patch []byte) ([]byte, error)) (Object, error) {
	fail := func(err error) (Object, error) {
		return Object{}, fmt.Errorf("change %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	steps, err := json.Marshal(patch)
	if err != nil {
		return fail(err)
	}
	before, err := object.MarshalJSON()
	if err != nil {
		return fail(err)
	}
	text, err := apply(before, steps)
	if err != nil {
		return fail(err)
	}
	after := &unstructured.Unstructured{}
	if err := after.UnmarshalJSON(text); err != nil {
		return fail(err)
	}
	return Object{Before: object, After: after}, nil
}

// sameContent reports whether two objects are the same but for their status.
func sameContent(a, b *unstructured.Unstructured) bool {
	without := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		content := maps.Clone(u.Object)
		delete(content, "status")
		return &unstructured.Unstructured{Object: content}
	}
	x, errA := without(a).MarshalJSON()
	y, errB := without(b).MarshalJSON()
	return errA == nil && errB == nil && string(x) == string(y)
}
