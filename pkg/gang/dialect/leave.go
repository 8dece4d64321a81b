package dialect

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
)

// Leave takes the pods of a template out of all gangs that it names, in any dialect. A gang that its labels and annotations declare by themselves,
// in a dialect that gangctl does not write, gets the name that rename makes of its own instead: nothing would declare it again.
func Leave(template *corev1.PodTemplateSpec, rename func(name string) string) {
	kept := ""
	if reader, ok := onlyRead(template); ok {
		if entries, key := nameEntry(reader, &template.ObjectMeta); key != "" {
			kept = rename(entries[key])
			entries[key] = kept
		}
	}
	for _, reader := range Readers() {
		for { // a reader sees a second name when the first is gone
			entries, key := nameEntry(reader, &template.ObjectMeta)
			if key == "" || entries[key] == kept {
				break
			}
			delete(entries, key)
		}
	}
	template.Spec.SchedulingGroup = nil
	if kept == "" {
		labels.RemoveMinimum(&template.ObjectMeta)
	}
}

// onlyRead is the reader of the dialect in which a template declares its gang by itself, if gangctl does not write that dialect.
func onlyRead(template *corev1.PodTemplateSpec) (gang.Reader, bool) {
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	key, ok := named(pod)
	if !ok {
		return gang.Reader{}, false
	}
	if _, written := WriterOf(key.Dialect); written {
		return gang.Reader{}, false
	}
	reader, ok := ReaderOf(key.Dialect)
	if !ok || reader.FromPods == nil {
		return gang.Reader{}, false
	}
	_, err := reader.FromPods(key, []*corev1.Pod{pod})
	return reader, err == nil
}

// nameEntry finds the label or annotation whose value a dialect takes for the name of a gang; key is empty if there is none. Only the reader knows
// which it is, so it is shown another value in each.
func nameEntry(reader gang.Reader, meta *metav1.ObjectMeta) (entries map[string]string, key string) {
	const other = "gangctl.dev/another-name"
	if reader.NameOf == nil {
		return nil, ""
	}
	for _, entries := range []map[string]string{meta.Labels, meta.Annotations} {
		for key, value := range entries {
			entries[key] = other
			name, _ := reader.NameOf(meta)
			entries[key] = value
			if name == other && value != "" {
				return entries, key
			}
		}
	}
	return nil, ""
}
