package smoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/setup/check"
)

// cleanUp is how long the deletion may take, even after an interrupt.
const cleanUp = 30 * time.Second

// Options are the pods that are placed, and where.
type Options struct {
	// Name is that of the gang; its pods are NAME-0 and NAME-1.
	Name, Namespace string
	// Scheduler is the schedulerName of the pods, Image what they run.
	Scheduler, Image string
	// Timeout is how long both may take to run.
	Timeout time.Duration
	// Now is the clock.
	Now func() time.Time
	// Progress is notified of each step.
	Progress func(string)
}

// errLate is why a wait ended.
var errLate = errors.New("timed out")

// Run places the gang and takes it away again, whatever happens. An error means that it was interrupted; everything else is part
// of the outcome.
func Run(ctx context.Context, client *kube.Client, o Options) (check.Outcome, *check.Placed, error) {
	r := &run{client: client, o: o, placed: &check.Placed{Namespace: o.Namespace, Scheduler: o.Scheduler, Dialect: string(gang.SchedulerPlugins)}}
	r.began = o.Now()
	finding := r.place(ctx)
	findings := []check.Finding{finding}
	deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer cancel()
	from := o.Now()
	err := r.remove(deleting)
	by := fmt.Sprintf("kubectl -n %s delete pods,podgroups.scheduling.x-k8s.io -l %s=%s", o.Namespace, Label, o.Name)
	switch interrupted := ctx.Err() != nil; {
	case interrupted && err != nil:
		return check.Outcome{}, nil, failure.WithCode(failure.CodeInterrupted, "interrupted; the gang of the smoke test is not deleted: %s", failure.From(err).Message).WithHint("%s", by)
	case interrupted:
		return check.Outcome{}, nil, failure.WithCode(failure.CodeInterrupted, "interrupted; the gang of the smoke test is deleted")
	case err != nil:
		findings = append(findings, check.Finding{Status: check.Fail, Message: "the gang is not deleted: " + failure.From(err).Message, Hint: by})
	default:
		r.placed.Deleted = seconds(o.Now().Sub(from))
	}
	title := fmt.Sprintf("a gang of %d pods is placed and runs", Members)
	return check.NewOutcome("smoke", check.Smoke, title, findings...), r.placed, nil
}

// run is one smoke test.
type run struct {
	client *kube.Client
	o      Options
	began  time.Time
	placed *check.Placed
	// group and pods are what was made, or may have been where an answer was lost.
	group bool
	pods  []string
}

func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond)) / float64(time.Second)
}

// place creates the gang and waits until it runs.
func (r *run) place(ctx context.Context) check.Finding {
	dialect := gang.SchedulerPlugins
	if err := r.createGroup(ctx); apierrors.IsNotFound(err) && !failure.NamespaceMissing(err) {
		dialect = gang.Labels // no PodGroups are served here
	} else if err != nil {
		return refused(err)
	}
	r.placed.Dialect = string(dialect)
	for i := range Members {
		pod := r.o.pod(i, dialect)
		_, err := r.client.Typed.CoreV1().Pods(r.o.Namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: "gangctl"})
		if !answered(err) {
			r.pods = append(r.pods, pod.Name)
		}
		if err != nil {
			return refused(operation("create", r.o.Namespace, pod.Name).Wrap(err))
		}
	}
	r.o.Progress(fmt.Sprintf("placing a gang of %d pods in namespace %s with scheduler %s", Members, r.o.Namespace, r.o.Scheduler))
	return r.await(ctx)
}

func (r *run) createGroup(ctx context.Context) error {
	group := r.o.podGroup()
	_, err := r.client.Dynamic.Resource(schedulerplugins.GVR()).Namespace(r.o.Namespace).Create(ctx, group, metav1.CreateOptions{FieldManager: "gangctl"})
	r.group = !answered(err)
	return groupOperation("create", r.o).Wrap(err)
}

// answered reports whether the API server has refused a request. The outcome of one that failed otherwise is unknown.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

func operation(verb, namespace, name string) failure.Op {
	return failure.Op{Verb: verb, Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespace: namespace, Name: name}
}

// refused is the finding for a create that failed: for want of a right, nothing was learnt of the cluster.
func refused(err error) check.Finding {
	e := failure.From(err)
	f := check.Finding{Status: check.Fail, Message: e.Message, Hint: e.Hint}
	if e.LacksRights() { // the hint is the rule that would allow it
		f.Status = check.Unknown
	}
	return f
}
