package order

import (
	"fmt"
	"maps"
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
	c := Class{Namespace: first.Namespace, Name: gang.RunsName(first.Name), Shape: gang.BoundedName(shape(len(members), first))}
	if owner := metav1.GetControllerOfNoCopy(first); owner != nil {
		c.Kind, c.Name = gang.BoundedName(owner.Kind), gang.RunsName(gang.BoundedName(owner.Name))
	}
	return c
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
