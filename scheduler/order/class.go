package order

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Class is whose gangs are taken to run for about as long: those of one owner and one shape. It is remembered, and no longer than names are,
// whatever users wrote.
type Class struct {
	// Namespace, Kind and Name are the owner's; Name is without the number or hash by which its runs differ.
	Namespace, Kind, Name string
	// Shape is how many members there are, and what the first by name requests.
	Shape string
}

// ClassOf is the class of a gang by its members, of which there is one at least.
func ClassOf(members []*corev1.Pod) Class {
	first := slices.MinFunc(members, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	c := Class{Namespace: first.Namespace, Name: baseName(first.Name), Shape: gang.BoundedName(shape(len(members), first))}
	if owner := metav1.GetControllerOfNoCopy(first); owner != nil {
		c.Kind, c.Name = gang.BoundedName(owner.Kind), baseName(gang.BoundedName(owner.Name))
	}
	return c
}

// suffix is the part by which the names of the runs of one job differ: at the end, the parts that have a digit, which are numbers, dates and most of
// the random ends that Kubernetes adds.
var suffix = regexp.MustCompile(`([-._]?[a-z]*[0-9][a-z0-9]*)+$`)

// baseName is a name without what distinguishes runs; all of it where nothing would be left.
func baseName(name string) string {
	if base := suffix.ReplaceAllString(name, ""); base != "" {
		return base
	}
	return name
}

func shape(members int, first *corev1.Pod) string {
	requests := request.Of(first)
	parts := []string{fmt.Sprint(members)}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		quantity := requests[name]
		parts = append(parts, string(name)+"="+quantity.String())
	}
	return strings.Join(parts, " ")
}
