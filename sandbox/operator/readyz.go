package operator

import (
	"context"
	"errors"
	"net/http"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// readyz is true once the webhook serves and every cache has been filled.
func readyz(mgr ctrl.Manager) healthz.Checker {
	return func(r *http.Request) error {
		if err := mgr.GetWebhookServer().StartedChecker()(r); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), syncTimeout)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("caches have not synced")
		}
		return nil
	}
}
