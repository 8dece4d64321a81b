package demo

import (
	"context"

	"github.com/gangctl/gangctl/sandbox/members"
)

// Act is one part of the demo: a set of nodes, jobs, and moments to look.
type Act struct {
	Title string
	// Moments are the captions of what Play returns, in order.
	Moments []string
	// Play leaves the stage empty for the next act.
	Play func(ctx context.Context, s *Stage) ([]members.List, error)
}

// Acts returns the demo's acts, in order.
func Acts() []Act {
	return []Act{
		{
			Title:   "Two jobs on 4 nodes with 1 GPU each",
			Moments: []string{"tf-job-1 runs, tf-job-2 was submitted second", "after tf-job-1 ended"},
			Play:    twoJobs,
		},
		{
			Title:   "One job of 1 ps and 4 workers with 2 GPUs each",
			Moments: []string{"with 4 GPUs in the cluster", "after 4 more GPUs joined"},
			Play:    growingCluster,
		},
	}
}

// twoJobs: job 1 takes 3 of 4 GPUs; job 2 needs 2 and finds 1.
func twoJobs(ctx context.Context, s *Stage) ([]members.List, error) {
	if err := s.AddNodes(ctx, 4, 1); err != nil {
		return nil, err
	}
	if err := s.Submit(ctx, "tf-job-1", "--workers", "3", "--gpus", "1", "--ps", "1", "--ps-cpu", "1"); err != nil {
		return nil, err
	}
	if _, err := s.WaitFor(ctx, func(seen members.List) bool { return seen.Count(members.Running) == 4 }); err != nil {
		return nil, err
	}
	if err := s.Submit(ctx, "tf-job-2", "--workers", "2", "--gpus", "1", "--ps", "1", "--ps-cpu", "1"); err != nil {
		return nil, err
	}
	contended, err := s.Decided(ctx, 7)
	if err != nil {
		return nil, err
	}
	if err := s.Finish(ctx, "tf-job-1"); err != nil {
		return nil, err
	}
	freed, err := s.WaitFor(ctx, func(seen members.List) bool { return seen.Job("tf-job-2").Count(members.Running) == 3 })
	if err != nil {
		return nil, err
	}
	return []members.List{contended, freed.Job("tf-job-2")}, s.clear(ctx, "tf-job-1", "tf-job-2")
}

// growingCluster: a job that needs 8 GPUs meets 4, and 4 more join.
func growingCluster(ctx context.Context, s *Stage) ([]members.List, error) {
	if err := s.AddNodes(ctx, 2, 2); err != nil {
		return nil, err
	}
	if err := s.Submit(ctx, "tf-smoke-gpu", "--workers", "4", "--gpus", "2", "--ps", "1", "--ps-cpu", "1"); err != nil {
		return nil, err
	}
	short, err := s.Decided(ctx, 5)
	if err != nil {
		return nil, err
	}
	if err := s.AddNodes(ctx, 2, 2); err != nil {
		return nil, err
	}
	enough, err := s.WaitFor(ctx, func(seen members.List) bool { return seen.Count(members.Running) == 5 })
	if err != nil {
		return nil, err
	}
	return []members.List{short, enough}, s.clear(ctx, "tf-smoke-gpu")
}

// clear leaves an empty stage. Both acts end with four nodes.
func (s *Stage) clear(ctx context.Context, jobs ...string) error {
	if err := s.Delete(ctx, jobs...); err != nil {
		return err
	}
	return s.RemoveNodes(ctx, "node-1", "node-2", "node-3", "node-4")
}
