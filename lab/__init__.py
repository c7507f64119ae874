"""What the experiments share: arguments and errors, saved results, comparisons, many trainings, devices, plots."""
