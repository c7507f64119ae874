// Starts the panels.
"use strict";

if (typeof EXPORTED === "undefined") {
  byId("missing").hidden = false;
} else {
  readPanel();
  const showExperiment = signalPanel();
  memoryPanel();
  bottleneckPanel();
  ctcPanel();
  serialPanel();
  questionsPanel(showExperiment);
}
