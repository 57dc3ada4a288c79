package conformance

func ownership() []row {
	return []row{
		differs("X1", "a state file that is lost while members run", "a daemon takes their id over and the same file is applied", "names, revisions, addresses and volumes come back from labels, and nobody is restarted",
			"It is the adoption of C20 and C21 for a whole host; a cluster whose etcd is lost has to be restored from a backup.", nil).in("daemon", "TestALostStoreIsPutTogetherFromLabels", "SpecLost"),
		differs("X2", "the same, and a set with something sensitive", "the same file is applied", "it rolls, unless the key file was kept",
			"The label of a revision tells nobody what is sensitive.", nil).in("daemon", "TestWhatIsSensitiveAfterALostStateFile", "sensitive"),
		differs("X3", "containers with our labels, of a set that is not stored", "they run or end", "they are listed as Stray and left alone until an apply takes them over",
			"What runs may be of use to somebody, and nobody asked for its end.", nil).in("daemon", "TestAStrayIsShownAndLeftAlone", "stateStray"),
		differs("X4", "a member that was renamed by hand, and a foreign container with its name", "the daemon looks", "the member runs on and says so; it has its name back when that is free",
			"A pod cannot be renamed, so there is nothing to compare; B10 is the case of a free name.", nil).in("runtime/pods", "TestAContainerWhoseNameIsTakenRunsOnAndSaysSo", "ContainerRenamed"),
	}
}
