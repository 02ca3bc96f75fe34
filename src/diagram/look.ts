import type { ChartTransition } from './chart.js'

/** The meaning of a final state, shown by its color. */
export type Tone = 'success' | 'limit' | 'error' | 'neutral'

/**
 * How a chart is emphasized. Entries for unknown states are ignored.
 *
 * @example
 * const look: Look = { tones: { PAID: 'success', REFUSED: 'error' }, mainPath: [['WAITING', 'PAID']] }
 */
export interface Look {
  /** Meanings of final states by path. Other final states are neutral. */
  tones: Readonly<Record<string, Tone>>
  /** Transitions drawn in bold, as source, target and, if several transitions connect them, the event or guard. */
  mainPath: readonly (readonly [from: string, to: string, by?: string])[]
  /**
   * Labels for transitions without an event in overviews, by guard name or by the path of the source state. Defaults to
   * the events that led to the source.
   */
  words?: Readonly<Record<string, string>>
}

/**
 * The look of the agent machine: its final states, and the path of a successful turn with one batch of tool
 * calls.
 *
 * @example
 * const dot = toDot(toChart(agentMachine), { look: agentLook })
 */
export const agentLook: Look = {
  tones: {
    COMPLETED: 'success',
    CANCELLED: 'neutral',
    TIMED_OUT: 'limit',
    MAX_STEPS: 'limit',
    BUDGET_EXCEEDED: 'limit',
    BLOCKED: 'error',
    ERROR: 'error',
  },
  mainPath: [
    ['RUNNING.preparing.starting', 'RUNNING.preparing.checkingLimits'],
    ['RUNNING.preparing.checkingLimits', 'RUNNING.asking.requesting'],
    ['RUNNING.asking.requesting', 'RUNNING.judging.accounting'],
    ['RUNNING.judging.accounting', 'RUNNING.judging.judgingCalls'],
    ['RUNNING.judging.judgingCalls', 'WAITING_FOR_TOOL.executing'],
    ['WAITING_FOR_TOOL.executing', 'WAITING_FOR_TOOL.judgingResults', 'isLastOfBatch'],
    ['WAITING_FOR_TOOL.judgingResults', 'RUNNING.preparing.checkingLimits'],
    ['RUNNING.judging.accounting', 'RUNNING.judging.ending', 'else'],
    ['RUNNING.judging.ending', 'COMPLETED'],
  ],
  words: {
    isPastDeadline: 'the deadline has passed',
    isPausing: 'PAUSE',
    isAsleep: 'the run is asleep',
    pausesRetry: 'PAUSE',
    isAtStepCap: 'all steps are used',
    isOverCallCap: 'all tool calls are used',
    isStoppedByCap: 'all steps or calls are used',
    isBudgetSpent: 'the budget is used up',
    isOverBudget: 'the budget is used up',
    isSpentBySummary: 'the budget is used up',
    isRefusedByBudget: 'the budget is used up',
    waitsForBudget: 'a shared budget is used up for now',
    isSpentByFailure: 'the budget is used up',
    isBlocked: 'a shield refuses',
    isTruncatedCall: 'the answer cannot be used',
    isEmpty: 'the answer cannot be used',
    isInvalid: 'the answer cannot be used',
    isConclusion: 'the final answer has arrived',
    pausesOnHalt: 'a guard halts the run',
    isHalted: 'a guard halts the run',
    userGuardHalts: 'a guard halts the run',
    'RUNNING.judging.stopping': 'a guard halts the run',
    concludesAtStepCap: 'all steps are used',
    concludesAtCallCap: 'all tool calls are used',
    concludesNearBudget: 'only the budget reserve is left',
    isStoppedByBudget: 'only the budget reserve is left',
    concludesOnHalt: 'a guard halts the run',
    isBackingOff: 'a back-off is active',
    hasSteering: 'steering is pending',
    hasInputShields: 'shields screen the input',
    hasRetrieval: 'passages are retrieved first',
    'RUNNING.preparing.starting': 'the input is ready',
    'RUNNING.preparing.screeningInput': 'shields have cleared the input',
    mayRetry: 'a failure that is retried',
    maySendWithout: 'the provider rejects part of the request',
    hasCalls: 'the model calls tools',
    mayContinue: 'the answer is cut off',
    mayReprompt: 'the answer is empty',
    mayRetryEmptyAnswer: 'the answer is empty',
    mayRepair: 'the answer does not match the schema',
    'RUNNING.judging.accounting': 'the model ends its turn',
    'RUNNING.judging.halting': 'a guard halts the run',
    hasRunnableCalls: 'the model calls tools',
    hasResultsToScreen: 'shields screen results',
    hasCallsToScreen: 'shields screen calls',
    'WAITING_FOR_TOOL.dispatching': 'no call is left',
    'RUNNING.preparing.checkingLimits': 'no limit is reached',
    'RUNNING.preparing.fittingContext': 'the request fits',
    'RUNNING.asking.requesting': 'the model has answered',
    'RUNNING.asking.screeningOutput': 'shields have cleared the answer',
    'RUNNING.asking.concluding': 'the final answer has arrived',
    'RUNNING.judging.recovering': 'the answer needs repair',
    'RUNNING.judging.judgingCalls': 'the model calls tools',
    'RUNNING.judging.consultingOnCalls': 'the model calls tools',
    isInteractive: 'an interactive run waits for a message',
    'RUNNING.judging.ending': 'the model ends its turn',
    hasCallsToApprove: 'a call needs approval',
    hasClientCalls: 'the client runs a call',
    hasPausedChildren: 'a sub-agent is paused',
    'WAITING_FOR_TOOL.judgingResults': 'all results have arrived',
    'WAITING_FOR_TOOL.consultingOnResults': 'all results have arrived',
  },
}

export function isMainTransition(
  { mainPath }: Look,
  { source, targets, on, when }: Pick<ChartTransition, 'source' | 'targets' | 'on' | 'when'>,
): boolean {
  return mainPath.some(
    ([from, to, by]) =>
      from === source && targets.includes(to) && (by === undefined || by === on || by === when),
  )
}

/** The light theme, used where CSS is not applied. Every color is unique so that the style sheet can match it. */
export const palette = {
  page: '#ffffff',
  card: '#fefefe',
  text: '#1f2328',
  quiet: '#59636e',
  line: '#848d97',
  rule: '#c6cdd5',
  main: '#0969da',
  /** Fills of compound states by depth. */
  areas: ['#f4f7fb', '#e9eff6', '#dfe7f1'],
  covered: '#1a7f37',
  missed: '#cf222e',
  missedFill: '#ffe6e3',
} as const

export const toneColors: Readonly<Record<Tone, { fill: string; line: string }>> = {
  success: { fill: '#dafbe1', line: '#1a7f37' },
  limit: { fill: '#fff3d1', line: '#9a6700' },
  error: { fill: '#ffe6e3', line: '#cf222e' },
  neutral: { fill: '#eef1f4', line: '#59636e' },
}

const colors: readonly (readonly [name: string, light: string, dark: string])[] = [
  ['page', palette.page, '#0d1117'],
  ['card', palette.card, '#161b22'],
  ['text', palette.text, '#e6edf3'],
  ['quiet', palette.quiet, '#9da7b3'],
  ['line', palette.line, '#6e7681'],
  ['rule', palette.rule, '#3a424c'],
  ['main', palette.main, '#58a6ff'],
  ['area-1', palette.areas[0], '#10161f'],
  ['area-2', palette.areas[1], '#141c27'],
  ['area-3', palette.areas[2], '#19222f'],
  ['good', palette.covered, '#3fb950'],
  ['good-fill', toneColors.success.fill, '#0f2d1a'],
  ['limit', toneColors.limit.line, '#d29922'],
  ['limit-fill', toneColors.limit.fill, '#2e2408'],
  ['bad', palette.missed, '#f85149'],
  ['bad-fill', palette.missedFill, '#3c1618'],
  ['neutral-fill', toneColors.neutral.fill, '#21262d'],
]

/**
 * Makes a picture follow the viewer's theme. Elements carry their light colors for programs without CSS; these
 * rules replace them with variables such as `--chart-page`, which switch in dark mode and which a page can
 * override.
 */
export const themeStyle = /* @__PURE__ */ [
  '<style>',
  `:root { ${colors.map(([name, light]) => `--chart-${name}: ${light};`).join(' ')} }`,
  '@media (prefers-color-scheme: dark) {',
  `:root { ${colors.map(([name, , dark]) => `--chart-${name}: ${dark};`).join(' ')} }`,
  '}',
  ...colors.flatMap(([name, light]) => [
    `[fill="${light}"] { fill: var(--chart-${name}) }`,
    `[stroke="${light}"] { stroke: var(--chart-${name}) }`,
  ]),
  '</style>',
].join('\n')
