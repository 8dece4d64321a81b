package render

import (
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// podGroup is the gang's object. It is named like the job: that is what an operator with gang scheduling on expects, and
// what people look for.
func podGroup(s Spec, minResources corev1.ResourceList) *spv1alpha1.PodGroup {
	pg := &spv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace},
		Spec:       spv1alpha1.PodGroupSpec{MinMember: s.MinAvailable, MinResources: minResources},
	}
	pg.SetGroupVersionKind(schedulerplugins.GVK())
	for key, value := range s.Labels {
		metav1.SetMetaDataLabel(&pg.ObjectMeta, key, value)
	}
	return pg
}

// Own makes a stored TFJob the owner of the PodGroup, so that deleting the job deletes both. It is not the controller, which
// is whoever creates the job's members. blockOwnerDeletion is false because setting it to true needs the right to update
// finalizers of TFJobs, which a user rarely has.
func Own(podGroup, job metav1.Object) {
	block := false
	podGroup.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion:         kubeflowv1.GroupVersion.String(),
		Kind:               kubeflowv1.TFJobKind,
		Name:               job.GetName(),
		UID:                job.GetUID(),
		BlockOwnerDeletion: &block,
	}})
}
