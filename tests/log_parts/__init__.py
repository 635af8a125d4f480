"""Parts of a partition log made to measure: batches, leaders, WALs and engines that tests of several layers share."""
