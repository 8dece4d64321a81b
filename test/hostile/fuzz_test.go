package hostile

import (
	"hash/crc32"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/gang"
)

// A target for every decoder of group objects, of what pods declare, and of jobs. `make fuzz` runs one after the other; without it
// testdata is run, which has the attacks of the tables and what was found.

func FuzzSchedulerPlugins(f *testing.F) { fuzz(f) }
func FuzzVolcano(f *testing.F)          { fuzz(f) }
func FuzzKubeBatch(f *testing.F)        { fuzz(f) }
func FuzzKoordinator(f *testing.F)      { fuzz(f) }
func FuzzKAI(f *testing.F)              { fuzz(f) }
func FuzzNative(f *testing.F)           { fuzz(f) }
func FuzzLabels(f *testing.F)           { fuzz(f) }
func FuzzYuniKorn(f *testing.F)         { fuzz(f) }
func FuzzKueue(f *testing.F)            { fuzz(f) }
func FuzzPDB(f *testing.F)              { fuzz(f) }
func FuzzDevices(f *testing.F)          { fuzz(f) }
func FuzzTFJob(f *testing.F)            { fuzz(f) }
func FuzzPyTorchJob(f *testing.F)       { fuzz(f) }
func FuzzMPIJob(f *testing.F)           { fuzz(f) }
func FuzzXGBoostJob(f *testing.F)       { fuzz(f) }
func FuzzPaddleJob(f *testing.F)        { fuzz(f) }
func FuzzJAXJob(f *testing.F)           { fuzz(f) }
func FuzzVolcanoJob(f *testing.F)       { fuzz(f) }
func FuzzBatchJob(f *testing.F)         { fuzz(f) }
func FuzzJobSet(f *testing.F)           { fuzz(f) }
func FuzzRayJob(f *testing.F)           { fuzz(f) }
func FuzzRayCluster(f *testing.F)       { fuzz(f) }
func FuzzTrainJob(f *testing.F)         { fuzz(f) }
func FuzzLeaderWorkerSet(f *testing.F)  { fuzz(f) }

// format is a kind of job in a dialect.
type format struct {
	kind    string
	dialect gang.Dialect
	job     bool // the target is about the job
	nodes   int  // three if 0
	spec    func(*corev1.PodSpec)
}

// targets are the formats by the name of the target.
func targets() map[string]format {
	return map[string]format{
		"FuzzSchedulerPlugins": {kind: "TFJob", dialect: gang.SchedulerPlugins}, "FuzzVolcano": {kind: "TFJob", dialect: gang.Volcano}, "FuzzKubeBatch": {kind: "TFJob", dialect: gang.KubeBatch},
		"FuzzKoordinator": {kind: "TFJob", dialect: gang.Koordinator}, "FuzzKAI": {kind: "PyTorchJob", dialect: gang.KAI}, "FuzzNative": {kind: "Job", dialect: gang.Native},
		"FuzzLabels": {kind: "Job", dialect: gang.Labels}, "FuzzYuniKorn": {kind: "Job", dialect: gang.YuniKorn}, "FuzzKueue": {kind: "Job", dialect: gang.Kueue}, "FuzzPDB": {kind: "TFJob", dialect: gang.PDB},
		"FuzzDevices": {kind: "Job", dialect: devices},
		"FuzzTFJob":   {kind: "TFJob", dialect: gang.Labels, job: true}, "FuzzPyTorchJob": {kind: "PyTorchJob", dialect: gang.SchedulerPlugins, job: true}, "FuzzMPIJob": {kind: "MPIJob", dialect: gang.SchedulerPlugins, job: true},
		"FuzzXGBoostJob": {kind: "XGBoostJob", dialect: gang.SchedulerPlugins, job: true}, "FuzzPaddleJob": {kind: "PaddleJob", dialect: gang.Volcano, job: true},
		"FuzzJAXJob": {kind: "JAXJob", dialect: gang.SchedulerPlugins, job: true}, "FuzzVolcanoJob": {kind: clustertest.VolcanoJob, dialect: gang.Volcano, job: true},
		"FuzzBatchJob": {kind: "Job", dialect: gang.SchedulerPlugins, job: true}, "FuzzJobSet": {kind: "JobSet", dialect: gang.SchedulerPlugins, job: true},
		"FuzzRayJob":          {kind: "RayJob", dialect: gang.SchedulerPlugins, job: true},
		"FuzzRayCluster":      {kind: "RayCluster", dialect: gang.SchedulerPlugins, job: true},
		"FuzzTrainJob":        {kind: "TrainJob", dialect: gang.SchedulerPlugins, job: true},
		"FuzzLeaderWorkerSet": {kind: "LeaderWorkerSet", dialect: gang.LeaderWorkerSet, job: true},
	}
}

// fuzz runs programs on the objects of the target of this name.
func fuzz(f *testing.F) {
	f.Helper()
	x, ok := targets()[f.Name()]
	if !ok {
		f.Fatal("there is no such target")
	}
	made, err := newTarget(x)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, "")
	f.Fuzz(func(t *testing.T, steps []byte, text string) {
		if in, ok := made.changed(steps, text); ok {
			made.feed(t, in, int(crc32.ChecksumIEEE(steps)%5))
		}
	})
}

// A target that drops its own valid objects tries nothing.
func TestTargetsTakeTheirObjects(t *testing.T) {
	for name, x := range targets() {
		made, err := newTarget(x)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := made.changed(nil, ""); !ok {
			t.Errorf("%s drops the objects that it changes", name)
		}
	}
}

// Every decoder has a target.
func TestEveryDecoderHasATarget(t *testing.T) {
	dialects, kinds := map[gang.Dialect]bool{}, map[string]bool{}
	for _, x := range targets() {
		dialects[x.dialect], kinds[x.kind] = true, true
	}
	for _, r := range readers() {
		if !dialects[r] {
			t.Errorf("dialect %s has none", r)
		}
	}
	for _, kind := range jobKinds() {
		if !kinds[kind] {
			t.Errorf("kind %s has none", kind)
		}
	}
}
