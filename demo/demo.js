// Starts the panels.
"use strict";

if (typeof EXPORTED === "undefined") {
  byId("missing").hidden = false;
} else {
  readPanel();
  const applySignal = signalPanel();
  bottleneckPanel();
  serialPanel();
  questionsPanel(applySignal);
}
