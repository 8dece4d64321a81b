package install

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The labels that every object carries: Kubernetes' recommended ones
// (https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/).
// By LabelPartOf and LabelInstance together, objects are found again that an
// earlier version shipped.
const (
	LabelPartOf    = "app.kubernetes.io/part-of"
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelVersion   = "app.kubernetes.io/version"
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// PartOf is the value of LabelPartOf, and of LabelManagedBy.
	PartOf = "gangctl"
)

// Selector finds all objects of one installation, whatever version made them.
func Selector(instance string) string {
	return LabelPartOf + "=" + PartOf + "," + LabelInstance + "=" + instance
}

// Of reports whether an object belongs to an installation. What a sandbox applies and what the scheduler writes itself is of gangctl and names no
// instance; what names another, such as the training operator, is not of this one.
func Of(object metav1.Object, instance string) bool {
	labels := object.GetLabels()
	of, named := labels[LabelInstance]
	return labels[LabelPartOf] == PartOf && (!named || of == instance)
}

// Label marks an object as belonging to an installation of a version.
func Label(object metav1.Object, instance, version string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range commonLabels(instance, version) {
		labels[key] = value
	}
	object.SetLabels(labels)
}

func commonLabels(instance, version string) map[string]string {
	return map[string]string{
		LabelPartOf: PartOf, LabelManagedBy: PartOf,
		LabelName: instance, LabelInstance: instance,
		LabelVersion: LabelValue(version),
	}
}

// LabelValue is a version as a label takes it: what builds add after a + may
// not stand there.
func LabelValue(version string) string {
	value := strings.Map(func(r rune) rune {
		if r == '+' {
			return '_'
		}
		return r
	}, version)
	if len(value) > validation.LabelValueMaxLength {
		value = value[:validation.LabelValueMaxLength]
	}
	return strings.TrimRight(value, "-_.")
}
