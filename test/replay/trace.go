// Package replay plays traces of jobs through the parts of the scheduler that decide who runs next, on a virtual clock: its order, its
// search for placements, its reservations and its claims. There is no API server and nothing runs, so months take seconds.
package replay

import (
	"embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"time"
)

// traces are jobs of Microsoft's Philly clusters, see testdata/ATTRIBUTION.
//
//go:embed testdata/*.csv
var traces embed.FS

// Job is a job of a trace.
type Job struct {
	ID int
	// Submit is when it was submitted, from the start of the trace.
	Submit time.Duration
	GPUs   int
	// Runtime is how long it ran.
	Runtime time.Duration
}

// Trace reads one of the traces: philly-vc1 to philly-vc4.
func Trace(name string) ([]Job, error) {
	file, err := traces.Open("testdata/" + name + ".csv")
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read trace %s: %w", name, err)
	}
	var jobs []Job
	for n, row := range rows[1:] {
		var values [4]int
		for i := range values {
			if values[i], err = strconv.Atoi(row[i]); err != nil {
				return nil, fmt.Errorf("read trace %s: row %d: %w", name, n+2, err)
			}
		}
		jobs = append(jobs, Job{
			ID: values[0], Submit: time.Duration(values[1]) * time.Second, GPUs: values[2], Runtime: time.Duration(values[3]) * time.Second,
		})
	}
	return jobs, nil
}
