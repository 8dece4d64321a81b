package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
)

const (
	// publishedFor is how old a published answer may be. A scheduler that works looks at a gang that waits again and again, publishes what
	// has changed at once, and what has not every half hour.
	publishedFor = 40 * time.Minute
	// unleasedFor is the same where it is unknown whether the scheduler still works: it has no lease if it runs without leader election.
	unleasedFor = time.Minute
)

// PublishedJob is the job that a published answer is about, as it is now.
type PublishedJob struct {
	Namespace  string
	UID        types.UID
	Generation int64
}

// PublishedAnswer reads the answer that the gang scheduler has published about a job, with a few GETs. It trusts a scheduler that works, and
// no other. Who may not see whether it works gets a recent answer only, or, if that is accepted, any with a note.
func PublishedAnswer(ctx context.Context, client *kube.Client, now time.Time, of PublishedJob, unseen bool) (*answer.Answer, error) {
	const home = install.DefaultNamespace
	event, err := client.Typed.CoreV1().Events(of.Namespace).Get(ctx, published.EventName(of.UID), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if !published.Carries(event) {
		return nil, published.ErrNone
	}
	key, err := client.Typed.CoreV1().ConfigMaps(home).Get(ctx, published.KeyName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("it cannot be checked who wrote the answer: %w", err)
	}
	public, err := published.DecodePublicKey(key)
	if err != nil {
		return nil, err
	}
	a, err := published.Get(event, public)
	if err != nil {
		return nil, err
	}
	if a.Job.Generation != of.Generation { // whoever may write events may put back an answer that the scheduler signed earlier
		return nil, errors.New("what it published is about the job before its spec was changed")
	}
	limit := publishedFor
	lease, err := client.Typed.CoordinationV1().Leases(home).Get(ctx, install.SchedulerInstance, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		limit = unleasedFor
	case apierrors.IsForbidden(err) && unseen:
		a.Notes = append(a.Notes, fmt.Sprintf("whether it still works cannot be seen: no right to get lease %s in namespace %s", install.SchedulerInstance, home))
	case apierrors.IsForbidden(err):
		limit = unleasedFor
	case err != nil:
		return nil, err
	case !published.Alive(lease, now):
		return nil, fmt.Errorf("it does not renew lease %s/%s", home, install.SchedulerInstance)
	}
	if age := now.Sub(*a.Snapshot.At); age > limit {
		return nil, fmt.Errorf("what it published is %s old", phrase.Age(age))
	}
	return a, nil
}

// ElsePublished returns an answer, or, if that is unknown as the caller may not list what it depends on, what the scheduler has published about the
// job: it sees the whole cluster.
func ElsePublished(ctx context.Context, client *kube.Client, now time.Time, a *answer.Answer) *answer.Answer {
	if a.Primary == nil || a.Primary.Code != answer.NoPermission || a.Job.UID == "" {
		return a
	}
	of := PublishedJob{Namespace: a.Job.Namespace, UID: types.UID(a.Job.UID), Generation: a.Job.Generation}
	theirs, err := PublishedAnswer(ctx, client, now, of, true)
	if err != nil {
		return a
	}
	return theirs
}
