package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	jobkinds "github.com/gangctl/gangctl/pkg/gang/kind"
)

// absent explains why a job cannot even be looked for: its kind is not served, or may not be listed. It is nil if neither is
// the case.
func absent(w *view.View, q Query) *answer.Answer {
	if a := Unlisted(w.Snap, q); a != nil {
		return a
	}
	if _, known := jobkinds.ByName(q.Kind); !known && len(w.Snap.Jobs) > 0 { // there is a kind of job that it may be of
		return nil
	}
	return notServed(w.Snap, q)
}

// notServed answers for a kind of job, or all of them, that the cluster does not know; nil if it does.
func notServed(s *snapshot.Snapshot, q Query) *answer.Answer {
	kinds := custom()
	if reader, ok := jobkinds.ByName(q.Kind); ok {
		kinds = []gang.JobReader{reader}
	}
	var unserved, operators []string
	for _, reader := range kinds {
		resource := schema.GroupResource{Group: reader.Group, Resource: reader.Resource}
		if reader.Group != "batch" && s.Server.Resources != nil && !s.Serves(resource, reader.Kind) {
			unserved = append(unserved, resource.String())
			for _, operator := range component.OperatorsOf(reader) {
				if !slices.Contains(operators, operator) {
					operators = append(operators, operator)
				}
			}
		}
	}
	if len(unserved) == 0 || len(unserved) < len(kinds) {
		return nil
	}
	commands := []string{"kubectl api-resources --api-group=" + kinds[0].Group}
	installable := slices.DeleteFunc(slices.Clone(kinds), func(r gang.JobReader) bool { return component.InstallOperator(r) == "" })
	switch {
	case len(kinds) == 1 && component.Install(kinds[0]) != "":
		commands = append([]string{component.Install(kinds[0])}, commands...)
	case len(installable) > 0:
		commands = append([]string{component.InstallOperator(installable...)}, commands...)
	}
	a := unanswerable(s, q, answer.CRDNotInstalled, answer.Blocked,
		"this cluster does not know "+strings.Join(unserved, ", ")+": no "+phrase.Or(operators)+" is installed", commands...)
	if len(kinds) > 1 { // no kind was named
		a.Primary.Details = []string{"it has no Job of Kubernetes of this name either; a CronJob has none before it makes its first"}
	}
	return a
}

// otherVersion answers for a job of a version that the cluster does not serve, while it serves others of the kind; nil for any other.
func otherVersion(s *snapshot.Snapshot, reader gang.JobReader, job *unstructured.Unstructured) *answer.Answer {
	resource := schema.GroupResource{Group: reader.Group, Resource: reader.Resource}.String()
	var versions []string
	for _, served := range s.Server.Resources {
		if version, ok := strings.CutPrefix(served, resource+"/"); ok {
			versions = append(versions, version)
		}
	}
	version := job.GroupVersionKind().Version
	if len(versions) == 0 || slices.Contains(versions, version) {
		return nil
	}
	q := Query{Kind: reader.Names[0], Namespace: job.GetNamespace(), Name: job.GetName()}
	return unanswerable(s, q, answer.CRDNotInstalled, answer.Blocked, fmt.Sprintf("this cluster serves %s as %s, and not as %s", resource, phrase.And(versions), version),
		"kubectl api-resources --api-group="+reader.Group)
}

// custom are the kinds of job that are not built in.
func custom() []gang.JobReader {
	return slices.DeleteFunc(jobkinds.Readers(), func(r gang.JobReader) bool { return r.Group == "batch" })
}

// Unlisted answers for jobs that the caller may not list, of the kind that the query names or of any: what cannot be seen
// must not pass for what is not there. It is nil if all may be listed.
func Unlisted(s *snapshot.Snapshot, q Query) *answer.Answer {
	var missing []answer.Right
	first := ""
	for _, kind := range listedKinds(q) {
		name := kind.String()
		d := s.Denial("", name, q.Namespace)
		if d == nil {
			continue
		}
		r := stage.RightOf("list", name, q.Namespace)
		r.Stage, r.Lost, r.Decisive = answer.StageRequest, "whether there is such a job is unknown", true
		if missing = append(missing, r); first == "" {
			first = fmt.Sprintf("list %ss %s: %s", kind.title, r.Where(), reason(*d))
		}
	}
	if first == "" {
		return nil
	}
	missing = append(missing, nextNeeded(s, q.Namespace, missing)...)
	a := unanswerable(s, q, answer.NoPermission, answer.Uncertain, first, "kubectl auth can-i --list"+inNamespace(q.Namespace))
	for _, r := range missing {
		a.Confidence.MissingPermissions = append(a.Confidence.MissingPermissions, r.String())
	}
	a.Confidence.Level = answer.Unknown
	a.Rights = rightsOf(s, missing, q.Namespace)
	return a
}

// nextNeeded are the rights in a namespace that an answer would lack next: rights are best requested together.
func nextNeeded(s *snapshot.Snapshot, namespace string, missing []answer.Right) []answer.Right {
	var more []answer.Right
	for _, d := range s.Denied {
		r := stage.RightOf("list", d.Resource, namespace)
		known := slices.ContainsFunc(missing, func(m answer.Right) bool { return m.Name() == r.Name() })
		if d.Verb != "" || r.OfCluster() || known || s.CanList(d.Resource, namespace) {
			continue
		}
		switch r.Resource {
		case "pods", "events", "podgroups", "resourcequotas", "limitranges":
			r.Stage, r.Lost, r.Decisive = answer.StageRequest, stage.Lost(r, ""), true
			more = append(more, r)
		}
	}
	return more
}

// listed is a kind, as texts name it, and the resource that is listed for it.
type listed struct {
	title string
	schema.GroupResource
}

// queried are the kinds that a query may be about.
func listedKinds(q Query) []listed {
	readers := jobkinds.Readers()
	if reader, ok := jobkinds.ByName(q.Kind); ok {
		readers = []gang.JobReader{reader}
	}
	var all []listed
	if jobkinds.MeansPod(q.Kind) {
		all = append(all, listed{"Pod", schema.GroupResource{Resource: "pods"}})
	}
	for _, r := range readers {
		all = append(all, listed{r.Title(), schema.GroupResource{Group: r.Group, Resource: r.Resource}})
	}
	return all
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// reason is how the API server put a denial; that of a file may not be known.
func reason(d snapshot.Denial) string {
	if d.Message == "" {
		return "forbidden"
	}
	return d.Message
}

// unanswerable is the answer to a query for whose job nothing could be read.
func unanswerable(s *snapshot.Snapshot, q Query, code answer.Code, verdict answer.Verdict, message string, commands ...string) *answer.Answer {
	f := answer.Finding{Code: code, Stage: answer.StageRequest, Verdict: verdict, Who: answer.Admin, Message: message, Commands: commands}
	a := &answer.Answer{
		APIVersion: answer.APIVersion, Job: answer.Job{Kind: q.Kind, Namespace: q.Namespace, Name: q.Name}, Verdict: verdict, Who: answer.Admin,
		Exit: answer.ExitCode(verdict, answer.Admin, false), Headline: q.Name + ": " + message, Primary: &f, AlsoBlocking: []answer.Finding{},
		Stages: []answer.StageState{}, Unblock: []answer.Action{}, Gang: answer.Gang{Roles: []answer.Role{}},
		Confidence: answer.Confidence{Level: answer.Proven, Unmodelled: []string{}, MissingPermissions: []string{}},
	}
	stamp(a, s.At, newestVersion(s.Pods))
	return a
}
