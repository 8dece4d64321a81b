package scheduler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"time"

	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/apiserver/pkg/server/statusz"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/slis"
	zpagesfeatures "k8s.io/component-base/zpages/features"
	"k8s.io/kubernetes/pkg/scheduler/metrics/resources"

	"github.com/gangctl/gangctl/scheduler/api"
)

// stopWithin is how long requests that are under way may take when the server stops.
const stopWithin = 5 * time.Second

var errNotSynced = errors.New("handlers are not fully synchronized")

// serve serves what kube-scheduler does, and the gangs, until ctx ends. The
// engine's own server has no room for a path of ours, so it must be off.
func (s *instance) serve(ctx context.Context) error {
	serving := s.config.SecureServing
	if serving == nil {
		return nil
	}
	s.config.SecureServing = nil
	stop := make(chan struct{})
	stopped, _, err := serving.Serve(s.guard(s.paths(ctx)), stopWithin, stop)
	if err != nil {
		close(stop)
		return fmt.Errorf("start secure server: %w", err)
	}
	s.work.Go(func() {
		<-ctx.Done()
		close(stop)
		<-stopped
	})
	return nil
}

// guard lets those through whom the API server knows and who have the right to
// the path; the configuration names paths that are open to all, such as /healthz.
func (s *instance) guard(handler http.Handler) http.Handler {
	resolver := &apirequest.RequestInfoFactory{}
	handler = genericapifilters.WithAuthorization(handler, s.config.Authorization.Authorizer, scheme.Codecs)
	handler = genericapifilters.WithAuthentication(handler, s.config.Authentication.Authenticator, genericapifilters.Unauthorized(scheme.Codecs), nil, nil)
	handler = genericapifilters.WithRequestInfo(handler, resolver)
	handler = genericapifilters.WithCacheControl(handler)
	handler = genericfilters.WithHTTPLogging(handler)
	return genericfilters.WithPanicRecovery(handler, resolver)
}

// paths are those of kube-scheduler, and ours.
func (s *instance) paths(ctx context.Context) http.Handler {
	m := mux.NewPathRecorderMux(DefaultName)
	s.health(ctx, m)
	configz.InstallHandler(m)
	m.Handle("/metrics", legacyregistry.HandlerWithReset())
	pods := resources.Handler(s.config.InformerFactory.Core().V1().Pods().Lister())
	m.HandleFunc("/metrics/resources", func(w http.ResponseWriter, r *http.Request) {
		if s.gangs.leads.Load() {
			pods.ServeHTTP(w, r)
		}
	})
	slis.SLIMetricsWithReset{}.Install(m)
	m.Handle(api.Path, api.Handler(s.listing))
	if s.config.ComponentConfig.EnableProfiling {
		routes.Profiling{}.Install(m)
		if s.config.ComponentConfig.EnableContentionProfiling {
			runtime.SetBlockProfileRate(1)
		}
		routes.DebugFlags{}.Install(m, "v", routes.StringFlagPutHandler(logs.GlogSetter))
	}
	if utilfeature.DefaultFeatureGate.Enabled(zpagesfeatures.ComponentFlagz) && s.config.Flagz != nil {
		flagz.Install(m, DefaultName, s.config.Flagz)
	}
	if utilfeature.DefaultFeatureGate.Enabled(zpagesfeatures.ComponentStatusz) {
		statusz.Install(m, DefaultName, statusz.NewRegistry(compatibility.DefaultBuildEffectiveVersion(), statusz.WithListedPaths(m.ListedPaths())))
	}
	return m
}

// health serves /healthz, /livez and /readyz. It is ready when the engine has
// seen all that existed when it started.
func (s *instance) health(ctx context.Context, m *mux.PathRecorderMux) {
	synced := make(chan struct{})
	s.work.Go(func() {
		if s.Engine.WaitForHandlersSync(ctx) == nil {
			close(synced)
		}
	})
	var checks []healthz.HealthChecker
	if s.config.ComponentConfig.LeaderElection.LeaderElect {
		checks = append(checks, s.config.LeaderElection.WatchDog)
	}
	ready := append([]healthz.HealthChecker(nil), checks...)
	ready = append(ready, healthz.NewShutdownHealthz(ctx.Done()), healthz.NamedCheck("sched-handler-sync", func(*http.Request) error {
		select {
		case <-synced:
			return nil
		default:
			return errNotSynced
		}
	}))
	healthz.InstallHandler(m, checks...)
	healthz.InstallLivezHandler(m)
	healthz.InstallReadyzHandler(m, ready...)
}
