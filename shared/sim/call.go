package sim

// call sends one request to a service that answers at once, and returns what its caller
// sees. The request may be lost, or its answer, and the process may end at any point.
// carryOut is what the service does.
func (i *instance) call(lostRequest, lostAnswer int, carryOut func(d *dice)) error {
	w, t := i.world, i.world.kernel.running
	t.exitIfKilled()
	if t.dice.chance(w.faults.Crash) {
		if t.dice.chance(2) {
			carryOut(t.dice)
		}
		i.crash()
		t.exitIfKilled()
	}
	t.wait(t.dice.between(callForMin, callForMax))
	if t.dice.chance(lostRequest) {
		t.wait(clientGivesUpAfter)
		return errNoAnswer
	}
	carryOut(t.dice)
	t.wait(t.dice.between(callForMin, callForMax))
	if t.dice.chance(lostAnswer) {
		t.wait(clientGivesUpAfter)
		return errNoAnswer
	}
	return nil
}
