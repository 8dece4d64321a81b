package view

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// What a group states may be any number: the shares of its members are none below zero.
func TestShareOfHugeMinResources(t *testing.T) {
	d := gang.Declaration{Key: gang.Key{Dialect: gang.Volcano, Namespace: "team", Name: "gang"}, MinMember: 3,
		MinResources: corev1.ResourceList{"example.com/thing": *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)}}
	job := (&View{}).madeOfGroup(d, nil)
	share := job.Roles[0].Template.Spec.Containers[0].Resources.Requests["example.com/thing"]
	if request.Amount("example.com/thing", share) < 1<<61 {
		t.Errorf("a member requests %s", share.String())
	}
}
