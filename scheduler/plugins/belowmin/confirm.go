package belowmin

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// confirmed asks the API server whether the members of a gang that have no place,
// as far as is known, have none. What is known comes from watches, and after an
// API server was away for a while they are late: a gang may be whole by now, and
// its places must not be taken then.
func (c *Controller) confirmed(ctx context.Context, t tally) (bool, error) {
	for _, pod := range t.waiting {
		now, err := c.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("look at pod %s/%s: %w", pod.Namespace, pod.Name, err)
		case now.UID != pod.UID || now.Spec.NodeName != "":
			return false, nil
		}
	}
	return true, nil
}
