package stage

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Finding is a reason, with the ways to remove it.
type Finding struct {
	answer.Finding
	// Fixes remove exactly this finding. Whether the gang starts then is for others to find out.
	Fixes []Fix
	// Partner is the other one of two that wait for each other; nil for any other finding.
	Partner *view.Consumer
	// Helper reports that it is about pods of the job that are no members of the gang: no size of the gang changes it.
	Helper bool
	// Reported is that the scheduler alone reports it, and nothing here computes it: nothing can be tried.
	Reported bool
	// Inferred reports that it follows from what is not seen, which may be where the snapshot does not show it.
	Inferred bool
}

// Fix is an action and what the cluster is like after it.
type Fix struct {
	answer.Action
	Apply func(*snapshot.Snapshot) *snapshot.Snapshot
	// Edit is the action as an edit of what the job specifies; nil if it is about something else.
	Edit func(*whatif.Spec)
	// Evicts are those whose room is taken, of which some may be enough.
	Evicts []*view.Consumer
	// Repair is the repair of nodes that it is, of which some may be enough; nil for any other.
	Repair *NodeRepair
}

// Found begins a finding; the methods below add to it. Its stage, verdict and who has to act are those of its code.
func Found(code answer.Code, format string, args ...any) *Finding {
	f := &Finding{Finding: answer.Finding{Message: line(format, args...)}}
	return f.Become(code)
}

// line is a text on one line: what others wrote may have several.
func line(format string, args ...any) string {
	parts := strings.FieldsFunc(fmt.Sprintf(format, args...), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return strings.TrimRight(strings.Join(parts, " "), " ")
}

// Become gives the finding a code, with the stage and the usual outcome of that.
func (f *Finding) Become(code answer.Code) *Finding {
	e := answer.Lookup(code)
	o := e.Outcomes[0]
	f.Code, f.Stage, f.Verdict, f.Who, f.Never = code, e.Stages[0], o.Verdict, o.Who, o.Never
	return f
}

// As gives the finding another outcome of its code than the usual one.
func (f *Finding) As(verdict answer.Verdict, who answer.Who) *Finding {
	f.Verdict, f.Who = verdict, who
	return f
}

// At gives the finding another stage of its code than the usual one.
func (f *Finding) At(stage answer.Stage) *Finding {
	f.Stage = stage
	return f
}

// Detail adds a further line.
func (f *Finding) Detail(format string, args ...any) *Finding {
	f.Details = append(f.Details, line(format, args...))
	return f
}

// MaxLines is how many lines about one thing a finding has, one for each of its nodes, pods or users: tenants decide how many there are.
const MaxLines = 12

// MaxReasons is how many reasons of one constraint are named.
const MaxReasons = 4

// DetailEach adds a line for each of some things, and counts those beyond [MaxLines].
func DetailEach[T any](f *Finding, all []T, line func(T) string) *Finding {
	for _, x := range all[:min(len(all), MaxLines)] {
		f.Detail("%s", line(x))
	}
	if more := len(all) - MaxLines; more > 0 {
		f.Detail("and %d more", more)
	}
	return f
}

// Fact adds a value for programs.
func (f *Finding) Fact(key string, value any) *Finding {
	if f.Facts == nil {
		f.Facts = map[string]any{}
	}
	f.Facts[key] = value
	return f
}

// See adds a field of an object as evidence.
func (f *Finding) See(apiVersion, kind string, obj metav1.Object, path string) *Finding {
	ref := apiVersion + "/" + kind + "/"
	if ns := obj.GetNamespace(); ns != "" {
		ref += ns + "/"
	}
	f.Evidence = append(f.Evidence, answer.Evidence{Ref: ref + obj.GetName(), Path: path, RV: obj.GetResourceVersion()})
	return f
}

// SeeRef adds a field of an object that is only known by its reference as evidence.
func (f *Finding) SeeRef(ref, path string) *Finding {
	f.Evidence = append(f.Evidence, answer.Evidence{Ref: ref, Path: path})
	return f
}

// SeeGroup adds a field of the object that declares a gang as evidence.
func (f *Finding) SeeGroup(d gang.Declaration, path string) *Finding {
	return f.SeeRef(d.Kind.GroupVersion().String()+"/"+d.Kind.Kind+"/"+d.Key.Namespace+"/"+d.Key.Name, path)
}

// SinceTime sets since when it has been so, if that is known.
func (f *Finding) SinceTime(t time.Time) *Finding {
	if !t.IsZero() {
		f.Since = &t
	}
	return f
}

// Run adds a command that shows more, or is the next step.
func (f *Finding) Run(command string) *Finding {
	f.Commands = append(f.Commands, command)
	return f
}

// Fix adds a way to remove the finding.
func (f *Finding) Fix(x Fix) *Finding {
	f.Fixes = append(f.Fixes, x)
	return f
}
