package diagnose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// A snapshot may lack anything: whoever made it may not have been allowed to see it, or cut it out. Whatever single object is
// gone, there is an answer, or the job is not found.
func TestPartialSnapshots(t *testing.T) {
	for _, s := range slices.Concat(requestScenarios(), podScenarios(), groupScenarios(), queueScenarios(), schedulerScenarios(), placeScenarios(), startScenarios(), lifeScenarios()) {
		t.Run(s.name, func(t *testing.T) {
			c := clustertest.New()
			s.build(c)
			var whole bytes.Buffer
			if err := c.Done().Write(&whole); err != nil {
				t.Fatal(err)
			}
			docs := strings.Split(whole.String(), "---\n")[1:]
			for i := 1; i < len(docs); i++ {
				part := strings.Join(slices.Delete(slices.Clone(docs), i, i+1), "---\n")
				answerOrNotFound(t, part, fmt.Sprintf("without\n%s", docs[i]))
			}
		})
	}
}

func answerOrNotFound(t *testing.T, text, what string) {
	t.Helper()
	s, err := snapshot.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	a, err := Explain(context.Background(), s, Query{Namespace: "team", Name: "gang"}, Options{NoAdvice: true})
	var missing *gang.JobNotFoundError
	if errors.As(err, &missing) {
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if a.Verdict == "" || a.Exit != answer.ExitCode(a.Verdict, a.Who, a.Never) || a.Primary == nil && a.Verdict != answer.Running && a.Verdict != answer.Done {
		t.Errorf("%s: got %s exit %d", what, a.Verdict, a.Exit)
	}
}
