package apply

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// webhookLag is how long a webhook may take to see an object that was made.
const webhookLag = 30 * time.Second

// WhenSeen creates an object that needs another one, which was made a moment before: webhooks that look for that one may not have seen it yet, as
// they read a cache. It tries again, once an interval, while the object is refused for that, which unseen finds out from the error, for half a
// minute. An attempt under way has the time that it needs. The error is that of the last attempt.
func WhenSeen(ctx context.Context, interval time.Duration, unseen func(error) bool, create func(context.Context) error) error {
	waiting, stop := context.WithTimeout(ctx, webhookLag)
	defer stop()
	var err error
	_ = wait.PollUntilContextCancel(waiting, interval, true, func(context.Context) (bool, error) {
		err = create(ctx)
		return err == nil || !unseen(err), nil
	}) // the error of the last attempt has more
	return err
}
