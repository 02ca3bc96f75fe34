/**
 * Diagrams of any XState v5 machine: SVG without a browser, Mermaid, SCXML and Stately's JSON. Also redacts
 * inspection events for Stately's inspectors.
 */
export {
  DiagramError,
  readTransitionCounts,
  toChart,
  type Chart,
  type ChartState,
  type ChartTransition,
  type TransitionCounts,
} from './chart.js'
export { toDifferenceChart, type ComparedWays, type DrawnDifferences } from './difference-chart.js'
export { toDot, type DotOptions } from './dot.js'
export { agentLook, type Look, type Tone } from './look.js'
export { toMachineJson, toMermaid, toScxml, toStately } from './text-formats.js'
export { toOverview, type Overview, type OverviewState, type OverviewTransition } from './overview.js'
export { createInspectorOptions, redactEvent, type RedactOptions } from './redact.js'
export { toOverviewSvg, toSvg } from './svg.js'
