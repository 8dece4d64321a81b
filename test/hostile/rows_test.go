package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

// rows are what a tenant may try, and the tests that hold it to be harmless, as PACKAGE.TEST. Those with a subtest of TestHostile are
// tried on a sandbox, too; the attacks of seed_test.go are fed to all that reads objects.
func rows() map[string][]string {
	return map[string][]string{
		"C1: a minimum without bounds stops the scheduler": {
			"scheduler/plugins/replacement.TestAnyMinimumInfersAPlaceAPod", "test/e2e.TestHostile/C1: a minimum of two thousand million"},
		"C2: replicas without bounds stop scheduler and commands": {
			"pkg/gang.TestAnyNumberOfMembers", "pkg/gang.TestSeconds", "pkg/cluster/jobs.TestListWithUnreadableJobs", "pkg/gang/request.TestSaturation", "test/e2e.TestHostile/C2: parallelism of two thousand million"},
		"H1: owners in a circle hang the policy worker": {"scheduler/suspend.TestJobsThatOwnEachOther", "test/e2e.TestHostile/H1: a circle of owners"},
		"H2: one member lifts a gang over everybody": {
			"pkg/gang.TestTermsOf", "scheduler.TestMixedPriorities", "scheduler/gangcache.TestTheClassOfAnObjectIsNotTrusted", "test/e2e.TestHostile/H2: one small member of a high class"},
		"H3: a search for devices without an end":            {"pkg/placement.TestASearchForDevicesEnds", "test/e2e.TestHostile/H3: a claim that no devices match"},
		"H4: a kept command line reads the files of another": {"pkg/cmd/resubmit.TestForeignLine", "pkg/cmd/resubmit.TestVariables", "test/e2e.TestHostile/H4: a command line that reads files"},
		"H5: secrets in files, reports and on screens": {
			"pkg/cmd/report.TestNoSecretGetsOut", "pkg/cluster/snapshot.TestWriteRedacts", "pkg/diagnose/history.TestNoSecrets", "pkg/cmd/submit.TestCommandLineKeepsNoCredentials",
			"pkg/cmd/submit.TestErrorsKeepNoSecrets", "pkg/cmd/submit.TestErrorsOfFilesKeepNoSecrets", "pkg/submit/redact.TestField", "test/e2e.TestNoSecretIsLogged"},
		"H6: a published answer is forged": {
			"pkg/diagnose/published.TestForgedAnswersAreRefused", "pkg/cmd/whypending.TestAForgedAnswerIsNotPrinted", "pkg/cmd/whypending.TestAnAnswerAboutAnEarlierSpecIsNotPrinted", "scheduler/explainer.TestSigningKey", "test/e2e.TestHostile/H6: a forged answer"},
		"H7: thousands of resources in one pod, of roles in one group": {
			"pkg/gang/dialect.TestManyRoles", "scheduler/plugins/preemption.TestManyBudgets",
			"pkg/placement.TestMatrixOfManyResources", "pkg/placement.TestLackingOfManyResources", "pkg/placement.TestSuspectsOfManyResources", "pkg/diagnose.TestManyResources", "test/hostile.TestManyResources"},
		"H8: a file of a job with replicas without bounds": {"pkg/submit/render.TestGangResourcesOfAnyNumberOfReplicas", "pkg/submit/render.TestCompleteAnyNumberOfMembers"},
		"H9: a pod of thousands of terms, compared with all pods and nodes": {
			"scheduler/bounds.TestBoundTerms", "scheduler/bounds.TestBoundResources", "test/e2e.TestNoisyTenant"},
		"H10: pods of which the API server takes seconds to write the status": {
			"scheduler/engine.TestSlowStatusesOfATenant", "scheduler/engine.TestStatusesOfLargePods", "scheduler/engine.TestNamespacesTakeTurns", "test/e2e.TestNoisyTenant"},
		"H11: a search for places without an end": {
			"scheduler/plugins/planner.TestSlowGangsTakeAQuarter", "scheduler/plugins/planner.TestASlowSearchIsNotRepeatedAtOnce", "test/e2e.TestHostile/H11: searches for places without an end"},
		"M1: escapes of a terminal": {"pkg/cli/iostreams.TestStreamsEscape", "pkg/cli/iostreams.FuzzEscape", "test/e2e.TestHostile/M1: escapes of a terminal"},
		"M2: a reservation that never ends": {"scheduler/plugins/aging.TestAReservationThatIsNotUsedIsGivenUp", "scheduler/plugins/aging.TestAGangThatComesAndGoesIsNotForgotten",
			"scheduler/plugins/aging.TestGangsOfANamespaceThatTakeTurns"},
		"M3: a label or an owner makes a job immune": {"scheduler/suspend.TestWhatDoesNotProtectAJob", "scheduler/suspend.TestReferencesThatNothingCanHave",
			"scheduler/suspend.TestPodsOfJobsThatAreNotThere", "scheduler/plugins/preemption.TestJobsOfKindsThatAreNotRead", "scheduler/suspend.TestBrittleJobsThatOwnEachOther",
			"scheduler/plugins/preemption.TestASuspendedJobThatDoesNotGo", "pkg/placement.TestDaemonSetPod"},
		"M4: names of other namespaces": {
			"scheduler/explainer.TestAPublishedAnswerNamesNothingOfOtherNamespaces", "scheduler/plugins/preemption.TestPreemptionNamesNothingOfOtherNamespaces",
			"pkg/diagnose/audience.TestNames", "test/e2e.TestHostile/M4: names of other namespaces"},
		"M5: the explainer rests after an unbounded round": {"scheduler/explainer.TestRoundsAreShort", "scheduler/explainer.TestAnOverlongAnswerDoesNotSilenceOthers", "scheduler/explainer.TestAGangThatComesWhileOthersWaitHasItsTime"},
		"M6: a gang whose name is no name":                 {"scheduler/explainer.TestOneGangThatFailsStopsNoOther", "scheduler/explainer.TestAGangWithoutAJobHasAName", "pkg/gang.TestLongNames", "test/e2e.TestHostile/M6: a gang whose name is no name"},
		"M7: a labelled Deployment of a tenant":            {"pkg/cmd/upgrade.TestFindsOnlyTheSchedulerThatIsBound", "pkg/cmd/install.TestFind", "test/e2e.TestHostile/M7: a Deployment that looks like the scheduler"},
		"M12: a Deployment, a lease or an event is called like a component's": {
			"pkg/diagnose/component.TestWhatATenantWritesIsNoComponent", "pkg/submit/choose.TestCandidatesOfTenants", "pkg/setup/operator.TestTrusted", "test/e2e.TestHostile/M12: components of a tenant"},
		"M13: a Secret is planted from which a resize of another user goes on": {"pkg/submit/resize.TestSecret", "pkg/cmd/resize.TestWhatIsKeptIsShown"},
		"M14: a number of advice means another way by now":                     {"pkg/cmd/whypending.TestApply"},
		"M8: a panic over a tenant's data": {
			"scheduler/engine.TestGuard", "scheduler/engine.TestGuardedPlugin", "scheduler.TestAPanicInAPluginEndsNothing", "scheduler/status.TestAPanicOverAGang", "scheduler/plugins/planner.TestAPanicOverAGang", "install.TestMemoryLimit"},
		"M9: places that are held cost no quota":                  {"scheduler/plugins/replacement.TestNoMoreIsClaimedThanANamespaceHad", "scheduler/plugins/replacement.TestClaimsOfANamespaceAreCapped"},
		"M10: a foreign command line to paste":                    {"pkg/cmd/describe.TestForeignLine", "pkg/submit/redact.TestCommandLine", "pkg/cli/shell.TestOneLine"},
		"M11: default-scheduler is served without being named":    {"scheduler.TestOwnProfile"},
		"L1: scheduler names are remembered":                      {"scheduler/gangcache.TestSchedulerNamesAreNotRemembered", "scheduler/order.TestClassesAreBounded"},
		"L2: a report's temporary file is predictable":            {"pkg/cmd/report.TestTemporaryFile"},
		"L3: a file of any size is read":                          {"pkg/cluster/snapshot.TestTooLarge"},
		"L4: uninstall deletes what users have":                   {"pkg/cmd/uninstall.TestSparesWhateverIsServed", "pkg/cmd/uninstall.TestSparesNamespace"},
		"L5: a data directory keeps its mode":                     {"sandbox/datadir.TestClaimClosesToOthers"},
		"L6: an expected runtime is a promise that nobody checks": {"scheduler/plugins/aging.TestABrokenPromise"},
		"L7: pods belong to jobs by UID alone": {
			"pkg/cluster/view.TestPodsOfOtherNamespacesAreNoMembers", "pkg/cluster/view.TestPartsOfJobsOfOtherNamespaces", "scheduler/plugins/preemption.TestPodsThatNameAJobOfAnotherNamespace"},
		"L8: a policy of null panics":                     {"pkg/diagnose/whatif.TestSetWhereNoObjectIs"},
		"L9: log lines without an end":                    {"pkg/cluster/logs.TestLongLines"},
		"L10: a grace overflows":                          {"scheduler/plugins/belowmin.TestAGraceDoubles"},
		"L11: a terminal stays raw after a second signal": {"pkg/cli/iostreams.TestRestoreAtOnce"},
		"L12: the second page of a list":                  {"pkg/cluster/paging.TestPageTwo", "pkg/cluster/paging.TestNothingElsePages", "pkg/cluster/snapshot/collect.TestPagesExpire", "pkg/cmd/uninstall.TestSecondPages"},
		"L13: tables measure bytes and cut runes":         {"pkg/cli/printer.TestTableOfWideText", "pkg/cli/wrap.TestColumns"},
		"L14: any pod reaches the scheduler's ports":      {"install.TestIngress"},
		"L15: an image of any base":                       {"test/generated.TestBaseImage"},
		"L16: who has the scheduler's account changes any field of a job": {
			"install.TestPolicyOnOldServers", "scheduler/suspend.TestThePolicyLeavesWhatIsWritten", "test/e2e.TestSchedulerLimit"},
		"L17: all jobs with our label are read at once": {"scheduler/suspend.TestRecallReadsPages"},
	}
}

// A row that was removed, or got another number, is missing.
func TestNoRowIsMissing(t *testing.T) {
	missing := sets.New[string]()
	for degree, n := range map[string]int{"C": 2, "H": 11, "M": 14, "L": 17} {
		for i := range n {
			missing.Insert(fmt.Sprint(degree, i+1))
		}
	}
	for row, tests := range rows() {
		id, _, _ := strings.Cut(row, ":")
		if !missing.Has(id) {
			t.Errorf("%s is no row, or is there twice", row)
		}
		if len(tests) == 0 {
			t.Errorf("%s: there is no test", row)
		}
		missing.Delete(id)
	}
	if len(missing) > 0 {
		t.Errorf("no row has %v", sets.List(missing))
	}
}

// A row whose test was renamed or removed has none.
func TestEveryRowHasATest(t *testing.T) {
	for row, tests := range rows() {
		for _, test := range tests {
			dot := strings.LastIndex(test, ".Test")
			if i := strings.LastIndex(test, ".Fuzz"); i >= 0 {
				dot = i
			}
			dir, name := test[:dot], test[dot+1:]
			name, sub, _ := strings.Cut(name, "/")
			if !written(t, dir, "func "+name+"(") || !written(t, dir, sub) {
				t.Errorf("%s: there is no test %s", row, test)
			}
		}
	}
}

// written reports whether the tests of a package have a text.
func written(t *testing.T, dir, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), text) {
			return true
		}
	}
	return false
}
