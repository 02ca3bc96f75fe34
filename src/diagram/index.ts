/**
 * Diagrams of any XState v5 machine: SVG without a browser, Mermaid, SCXML, and the JSON that Stately imports; and what
 * Stately's inspectors may be told of a run.
 */
export { type Chart, toChart, type ChartState, type ChartTransition } from './chart.js'
export { readTransitionCounts, type TransitionCounts } from './transition-counts.js'
export { type ComparedWays, type DrawnDifferences, toDifferenceChart } from './difference-chart.js'
export { type DotOptions, toDot } from './dot.js'
export { DiagramError } from './errors.js'
export { agentLook, type Look, type Tone } from './look.js'
export { toMachineJson, toStately } from './machine-json.js'
export { toMermaid } from './mermaid.js'
export { type Overview, toOverview, type OverviewState, type OverviewTransition } from './overview.js'
export { redactEvent, createInspectorOptions, type RedactOptions } from './redact.js'
export { toScxml } from './scxml.js'
export { toOverviewSvg, toSvg } from './svg.js'
