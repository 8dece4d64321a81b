// Package planner finds a place for every member of a gang at once, before the engine tries the members one by one.
//
// The engine places the members of a gang greedily, each where it scores best beside those before it. For members that differ
// that may fail although the gang has a placement. When the engine begins with a gang, the plugin GangPlanner asks package fit
// for a placement of the whole gang and answers for each member with the one node that it has there; the engine's own filters
// then look at that node alone and stay the judge. A member that they refuse is placed as if there were no plan, and counted.
//
// A gang that provably has no placement fails at once, with the numbers that prove it on the board, whatever it would have cost
// the engine to find out. Where package fit is stricter than the engine, or does not know all that the engine knows, that is no
// proof, and the engine tries by itself.
//
// A gang that failed is parked: it is tried again when something happened that could help it, not by the clock. See memo.
package planner
