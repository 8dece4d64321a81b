package manifest

import (
	"context"
	"encoding/base64"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// webhookName is the Training Operator's own.
const webhookName = "validator.training-operator.kubeflow.org"

// Webhook returns the configuration that has TFJobs checked at a URL whose
// certificate ca (PEM) signs.
func Webhook(url string, ca []byte) []byte {
	return fmt.Appendf(nil, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: %s
webhooks:
- name: validator.tfjob.training-operator.kubeflow.org
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 10
  clientConfig:
    url: %s
    caBundle: %s
  rules:
  - apiGroups: [kubeflow.org]
    apiVersions: [v1]
    operations: [CREATE, UPDATE]
    resources: [tfjobs]
`, webhookName, url, base64.StdEncoding.EncodeToString(ca))
}

// RemoveWebhook lets TFJobs pass unchecked: without an operator nobody answers.
func (a *Applier) RemoveWebhook(ctx context.Context) error {
	gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	err := a.Client.Resource(gvr).Delete(ctx, webhookName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ValidatingWebhookConfiguration %s: %w", webhookName, err)
	}
	return nil
}
