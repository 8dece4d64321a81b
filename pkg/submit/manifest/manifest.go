// Package manifest reads jobs from a file as users keep them, TFJobs of any version from v1alpha2 on, the PodGroups of their
// gangs, and the other objects that they need: ConfigMaps, Secrets, Services, volume claims. What cannot be meant is refused, with its
// place in the file; an unknown field is kept and noted, for the API server to validate.
package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/document"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/submit/convert"
)

// Manifest is the objects of a file, without what only API servers write. Objects are in the order of the file.
type Manifest struct {
	// Jobs are those whose members are to be gangs; TFJobs are as kubeflow.org/v1 has them today. There is at least one.
	Jobs []*unstructured.Unstructured
	// Groups are the objects that declare gangs, in any dialect.
	Groups []*unstructured.Unstructured
	// Others are all other objects, as they were written.
	Others []*unstructured.Unstructured
	// Dropped are the fields that only API servers write and that the file had, as an object read from a cluster has them.
	Dropped []string
	// Notes are what was converted, what has no effect, and what is not known; each is a sentence without a stop.
	Notes []string
}

// Parse reads a stream of YAML or JSON. Errors name the document, the line, the object and the field; of a file without a job it is a
// [NoJobError].
func Parse(data []byte) (*Manifest, error) { return ParseOf(schema.GroupKind{}, data) }

// ParseOf is Parse for a file of which is known what kind of job it holds: where that is a Job of Kubernetes itself and there is no other, one that
// runs one pod at a time is meant.
func ParseOf(kind schema.GroupKind, data []byte) (*Manifest, error) {
	docs, err := document.Split(data)
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	for _, d := range docs {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(d.JSON); err != nil {
			return nil, d.Errorf(0, "no Kubernetes object: %s", plain(err))
		}
		p := place{Document: d, node: tree(d)}
		if err := p.refuseTwice(u); err != nil {
			return nil, err
		}
		if err := m.add(p, u); err != nil {
			return nil, err
		}
	}
	if kind == batchjob.Reader().GroupKind && len(m.Jobs) == 0 {
		m.Others = slices.DeleteFunc(m.Others, func(u *unstructured.Unstructured) bool {
			meant := u.GroupVersionKind().GroupKind() == kind
			if meant {
				m.Jobs = append(m.Jobs, u)
			}
			return meant
		})
	}
	if i := slices.IndexFunc(m.Others, ray.UsesAnother); i >= 0 && len(m.Jobs) == 0 {
		return nil, fmt.Errorf("RayJob %s runs on a RayCluster that is there (clusterSelector), whose pods are the gang: there is nothing to start together; create it with kubectl", nameOf(m.Others[i]))
	}
	if all := slices.Concat(m.Others, m.Groups); len(m.Jobs) == 0 && len(all) > 0 {
		return nil, &NoJobError{all}
	}
	if len(m.Jobs) == 0 {
		return nil, errors.New("the file holds no objects")
	}
	slices.Sort(m.Dropped)
	m.Dropped = slices.Compact(m.Dropped)
	return m, nil
}

// add takes one object, or those of a list.
func (m *Manifest) add(p place, u *unstructured.Unstructured) error {
	gvk := u.GroupVersionKind()
	if items, isList := u.Object["items"].([]any); isList && gvk.Group == "" && gvk.Kind == "List" {
		for i, item := range items {
			object, ok := item.(map[string]any)
			if !ok {
				return p.errorf("items[%d] is no object", i)
			}
			if err := m.add(p.item(i), &unstructured.Unstructured{Object: object}); err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case gvk.Kind == "" || gvk.Version == "":
		return p.errorf("no Kubernetes object: it has no kind, or no apiVersion")
	case u.GetName() == "" && u.GetGenerateName() == "":
		return p.errorf("%s has no metadata.name", u.GetKind())
	}
	if err := m.check(p, u); err != nil {
		return err
	}
	m.Dropped = append(m.Dropped, drop(u)...)
	switch {
	case convert.Reads(gvk):
		return m.addJob(p, u)
	case isGroup(gvk.GroupKind()):
		m.Groups = append(m.Groups, u)
	case isJob(u):
		m.omitEmpty(u)
		m.Jobs = append(m.Jobs, u)
	default:
		m.Others = append(m.Others, u)
	}
	return nil
}

// isJob reports whether an object is a job of a kind whose members can be a gang. A Job of Kubernetes itself that runs one pod
// at a time is not: it prepares data or tidies up.
func isJob(u *unstructured.Unstructured) bool {
	if kind := u.GroupVersionKind().GroupKind(); kind != batchjob.Reader().GroupKind {
		reader, known := kinds.ByKind(kind)
		return known && !reader.Unmanaged && !ray.UsesAnother(u) // whose members are those of a RayCluster
	}
	n, _, _ := unstructured.NestedInt64(u.Object, "spec", "parallelism")
	return n > 1
}

func (m *Manifest) addJob(p place, u *unstructured.Unstructured) error {
	converted, err := convert.TFJob(u)
	if err != nil {
		return p.errorf("TFJob %s: %w", nameOf(u), err)
	}
	for _, note := range slices.Concat(converted.Changes, converted.Notes) {
		m.Notes = append(m.Notes, fmt.Sprintf("TFJob %s: %s", nameOf(u), note))
	}
	m.omitEmpty(converted.Job)
	m.Jobs = append(m.Jobs, converted.Job)
	return nil
}

// omitEmpty takes the roles without members out of a job whose controller would take them for the failure or the end of it. One that has no members at all
// is refused elsewhere.
func (m *Manifest) omitEmpty(u *unstructured.Unstructured) {
	reader, _ := kinds.ByKind(u.GroupVersionKind().GroupKind())
	if !reader.OmitsEmpty {
		return
	}
	job, err := reader.Read(u)
	if err != nil || job.Total() == 0 {
		return // which is an error of whoever reads it next
	}
	for _, r := range job.Roles {
		template := reader.TemplatePath(r)
		path := template[:len(template)-1]
		if _, there, _ := unstructured.NestedFieldNoCopy(u.Object, path...); !there || r.Replicas != 0 {
			continue
		}
		unstructured.RemoveNestedField(u.Object, path...)
		m.Notes = append(m.Notes, fmt.Sprintf("%s %s: %s is left out, as it has 0 replicas: the operator would make a pod of it for a moment, and end the job with it", u.GetKind(), nameOf(u), strings.Join(path, ".")))
	}
}

// isGroup reports whether objects of a kind declare gangs.
func isGroup(kind schema.GroupKind) bool {
	_, ok := dialect.ByKind(kind)
	return ok
}

func nameOf(u *unstructured.Unstructured) string {
	if u.GetName() == "" {
		return u.GetGenerateName()
	}
	return u.GetName()
}

// serverFields are written by API servers only; a create that carries them is refused or misleads.
func serverFields() [][]string {
	return [][]string{{"status"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"},
		{"metadata", "creationTimestamp"}, {"metadata", "deletionTimestamp"}, {"metadata", "deletionGracePeriodSeconds"},
		{"metadata", "managedFields"}, {"metadata", "selfLink"}}
}

// drop removes what only API servers write, and returns what that was. An empty creationTimestamp or status, as generators leave
// them behind, is not reported.
func drop(u *unstructured.Unstructured) []string {
	var dropped []string
	for _, path := range serverFields() {
		value, found, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
		if !found {
			continue
		}
		unstructured.RemoveNestedField(u.Object, path...)
		if m, isMap := value.(map[string]any); value != nil && !(isMap && len(m) == 0) {
			dropped = append(dropped, strings.Join(path, "."))
		}
	}
	dropEmptyTimes(u.Object)
	return dropped
}

// dropEmptyTimes removes the empty creationTimestamp that generators leave in the metadata of pod templates, too: an API server
// that validates strictly refuses it there, as its schema does not know it.
func dropEmptyTimes(value any) {
	switch v := value.(type) {
	case map[string]any:
		if at, found := v["creationTimestamp"]; found && at == nil {
			delete(v, "creationTimestamp")
		}
		for _, item := range v {
			dropEmptyTimes(item)
		}
	case []any:
		for _, item := range v {
			dropEmptyTimes(item)
		}
	}
}
