import { setup } from 'xstate'
import * as actions from './agent/actions.js'
import * as actors from './agent/actors.js'
import * as conditions from './agent/conditions.js'
import { type AgentContext, createContext } from './agent/context.js'
import type { AgentInput } from './agent/context.js'
import type { Announcement } from './agent/announcements.js'
import type { AgentMachineEvent } from './agent/events.js'
import type { RunResult } from './agent/outcome.js'
import { resultOf } from './agent/result-of.js'

/**
 * The agent loop. Each top-level state is an `AgentState` that users see; the finals are how a run can end.
 *
 * Pure: context is plain JSON, time arrives on events, whatever waits is an actor. The same events give the same
 * states, so a log of events is the run.
 *
 * @example
 * // The bare machine: its events in, its states out. `agent.machine` is the same with an agent's actors.
 * const [before] = initialTransition(agentMachine, agent.input('Go.'))
 * const [after] = transition(agentMachine, before, { type: 'CANCEL', why: 'Not now.' })
 * console.log(after.value, after.output?.reason) // CANCELLED cancelled
 */
export const agentMachine = setup({
  types: {} as {
    context: AgentContext
    events: AgentMachineEvent
    input: AgentInput
    output: RunResult
    emitted: Announcement
  },
  actors,
  guards: conditions,
  actions,
}).createMachine({
  id: 'agent',
  description: 'One run of an agent: from a user message to a final state.',
  context: ({ input }) => createContext(input),
  output: ({ context }) => resultOf(context),
  entry: 'startDeadline',
  initial: 'RUNNING',
  on: {
    CANCEL: {
      target: '.CANCELLED',
      actions: ['keepPartial', { type: 'because', params: { reason: 'cancelled' } }],
    },
    DEADLINE: {
      guard: 'isClockRunning',
      target: '.TIMED_OUT',
      actions: ['keepPartial', { type: 'because', params: { reason: 'timeout' } }],
    },
    STORE_FAILED: {
      target: '.ERROR',
      actions: ['keepPartial', 'noteStoreFailure', { type: 'because', params: { reason: 'store_error' } }],
    },
    PAUSE: { actions: 'notePause' },
    STEER: { actions: 'queueSteering' },
  },
  states: {
    RUNNING: {
      description: 'The loop thinks: it prepares a request, waits for the model, or judges what came back.',
      entry: { type: 'enter', params: { state: 'RUNNING' } },
      initial: 'starting',
      on: {
        RESUMED: [
          {
            guard: 'isPastDeadline',
            target: '#agent.TIMED_OUT',
            actions: { type: 'because', params: { reason: 'timeout' } },
          },
          { target: '.whereItWas', reenter: true, actions: ['noteTools', 'startDeadline'] },
        ],
      },
      states: {
        whereItWas: { type: 'history', description: 'The substate that a restored run was in.' },

        starting: {
          description: 'The user message is taken into the transcript.',
          entry: 'takeInput',
          always: [
            { guard: 'hasInputShields', target: 'screeningInput' },
            { guard: 'hasRetrieval', target: 'retrieving' },
            { target: 'checkingLimits' },
          ],
        },

        screeningInput: {
          description: 'Input shields look at the user message before any model does.',
          invoke: {
            id: 'inputShields',
            src: 'screenInput',
            onDone: [
              {
                guard: 'isBlocked',
                target: '#agent.BLOCKED',
                actions: [
                  'heedInputShields',
                  'keepShieldMessage',
                  { type: 'because', params: { reason: 'shield' } },
                ],
              },
              { guard: 'hasRetrieval', target: 'retrieving', actions: 'heedInputShields' },
              { target: 'checkingLimits', actions: 'heedInputShields' },
            ],
            onError: {
              target: '#agent.ERROR',
              actions: ['noteFailure', { type: 'because', params: { reason: 'internal' } }],
            },
          },
        },

        retrieving: {
          description: 'Memory is searched for what helps with this message.',
          invoke: {
            id: 'retrieval',
            src: 'retrieve',
            onDone: { target: 'checkingLimits', actions: 'noteRetrieved' },
            onError: {
              target: '#agent.ERROR',
              actions: ['noteFailure', { type: 'because', params: { reason: 'internal' } }],
            },
          },
        },

        checkingLimits: {
          description: 'The one safe point of the loop: every limit is checked here, in this order.',
          entry: 'deliverSteering',
          always: [
            {
              guard: 'isPastDeadline',
              target: '#agent.TIMED_OUT',
              actions: { type: 'because', params: { reason: 'timeout' } },
            },
            {
              guard: 'isPausing',
              target: '#agent.PAUSED',
              actions: { type: 'because', params: { reason: 'paused' } },
            },
            {
              guard: 'concludesAtStepCap',
              target: 'concluding',
              actions: { type: 'because', params: { reason: 'max_steps' } },
            },
            {
              guard: 'isAtStepCap',
              target: '#agent.MAX_STEPS',
              actions: { type: 'because', params: { reason: 'max_steps' } },
            },
            { guard: 'isBudgetSpent', target: '#agent.BUDGET_EXCEEDED', actions: 'becauseOfBudget' },
            { guard: 'hasUnscreenedInput', target: 'screeningInput' },
            { guard: 'fitsContext', target: 'fittingContext' },
            { guard: 'isBackingOff', target: 'backingOff' },
            { target: 'requesting' },
          ],
        },

        fittingContext: {
          description: 'The transcript is made to fit the window of the model.',
          invoke: {
            id: 'fitting',
            src: 'fitContext',
            onDone: [
              {
                guard: 'isSpentBySummary',
                target: '#agent.BUDGET_EXCEEDED',
                actions: ['applyFit', 'becauseOfBudget'],
              },
              { guard: 'isBackingOff', target: 'backingOff', actions: 'applyFit' },
              { target: 'requesting', actions: 'applyFit' },
            ],
            onError: [
              {
                guard: 'doesNotFit',
                target: '#agent.ERROR',
                actions: ['noteFailure', { type: 'because', params: { reason: 'context_overflow' } }],
              },
              {
                target: '#agent.ERROR',
                actions: ['noteFailure', { type: 'because', params: { reason: 'internal' } }],
              },
            ],
          },
        },

        requesting: {
          description: 'One attempt at one model response.',
          invoke: {
            id: 'model',
            src: 'requestModel',
            input: { conclude: false },
            onDone: [
              { guard: 'isHeld', target: 'screeningOutput', actions: 'recordResponse' },
              { target: 'accounting', actions: 'recordResponse' },
            ],
            onError: [
              {
                guard: 'isRefusedByBudget',
                target: '#agent.BUDGET_EXCEEDED',
                actions: [
                  'noteFailure',
                  'keepPartial',
                  { type: 'because', params: { reason: 'token_budget' } },
                ],
              },
              {
                guard: 'isContextOverflow',
                target: '#agent.ERROR',
                actions: [
                  'noteFailure',
                  'keepPartial',
                  { type: 'because', params: { reason: 'context_overflow' } },
                ],
              },
              {
                guard: 'isSpentByFailure',
                target: '#agent.BUDGET_EXCEEDED',
                actions: ['noteFailure', 'keepPartial', 'becauseOfBudget'],
              },
              {
                guard: 'pausesRetry',
                target: '#agent.PAUSED',
                actions: ['noteFailure', 'scheduleRetry', { type: 'because', params: { reason: 'paused' } }],
              },
              { guard: 'mayRetry', target: 'backingOff', actions: ['noteFailure', 'scheduleRetry'] },
              {
                guard: 'isIncomplete',
                target: '#agent.ERROR',
                actions: [
                  'noteFailure',
                  'keepPartial',
                  { type: 'because', params: { reason: 'incomplete_response' } },
                ],
              },
              {
                target: '#agent.ERROR',
                actions: [
                  'noteFailure',
                  'keepPartial',
                  { type: 'because', params: { reason: 'provider_error' } },
                ],
              },
            ],
          },
        },

        screeningOutput: {
          description: 'Output shields look at what the model said before anybody else does.',
          invoke: {
            id: 'outputShields',
            src: 'screenOutput',
            onDone: [
              {
                guard: 'isBlocked',
                target: '#agent.BLOCKED',
                actions: [
                  'tellOutputFindings',
                  'keepShieldMessage',
                  { type: 'because', params: { reason: 'shield' } },
                ],
              },
              {
                guard: 'isStoppedByStepCap',
                target: '#agent.MAX_STEPS',
                actions: ['tellOutputFindings', 'releaseAnswer'],
              },
              {
                guard: 'pausesOnHalt',
                target: '#agent.PAUSED',
                actions: ['tellOutputFindings', 'releaseAnswer'],
              },
              {
                guard: 'isConclusion',
                target: '#agent.ERROR',
                actions: ['tellOutputFindings', 'releaseAnswer'],
              },
              { target: 'accounting', actions: ['tellOutputFindings', 'releaseAnswer'] },
            ],
            onError: {
              target: '#agent.ERROR',
              actions: ['noteFailure', { type: 'because', params: { reason: 'internal' } }],
            },
          },
        },

        backingOff: {
          description: 'Waits out a recoverable failure before the next attempt.',
          on: {
            PAUSE: { target: '#agent.PAUSED', actions: { type: 'because', params: { reason: 'paused' } } },
          },
          invoke: {
            id: 'backOff',
            src: 'backOff',
            input: ({ context }) => ({ until: context.backOffUntil }),
            onDone: { target: 'requesting' },
            onError: {
              target: '#agent.ERROR',
              actions: ['noteFailure', { type: 'because', params: { reason: 'internal' } }],
            },
          },
        },

        accounting: {
          description: 'A response is in the transcript and paid for; what it is decides where it leads.',
          always: [
            { guard: 'isOverBudget', target: '#agent.BUDGET_EXCEEDED', actions: 'becauseOfBudget' },
            { guard: 'hasCalls', target: 'checkingRepetition' },
            {
              guard: 'isFiltered',
              target: 'ending',
              actions: [{ type: 'because', params: { reason: 'content_filter' } }, 'settleBatch'],
            },
            {
              guard: 'isRefusal',
              target: 'ending',
              actions: [{ type: 'because', params: { reason: 'refusal' } }, 'settleBatch'],
            },
            { guard: 'mayContinue', target: 'recovering', actions: 'continueAnswer' },
            {
              guard: 'isTruncatedCall',
              target: '#agent.ERROR',
              actions: { type: 'because', params: { reason: 'max_tokens' } },
            },
            {
              guard: 'isTruncated',
              target: 'ending',
              actions: { type: 'because', params: { reason: 'max_tokens' } },
            },
            { guard: 'mayReprompt', target: 'recovering', actions: 'reprompt' },
            { guard: 'mayAskAgain', target: 'recovering', actions: 'askAgain' },
            {
              guard: 'isEmpty',
              target: '#agent.ERROR',
              actions: { type: 'because', params: { reason: 'empty_response' } },
            },
            { guard: 'mayRepair', target: 'recovering', actions: 'askForRepair' },
            {
              guard: 'isInvalid',
              target: '#agent.ERROR',
              actions: { type: 'because', params: { reason: 'invalid_output' } },
            },
            { target: 'ending', actions: { type: 'because', params: { reason: 'end_turn' } } },
          ],
        },

        checkingRepetition: {
          description: 'The guards look at the calls before any of them runs.',
          entry: 'judgeCalls',
          always: [
            { guard: 'isHalted', target: 'halting' },
            { guard: 'consultsOnCalls', target: 'consultingOnCalls' },
            { guard: 'hasCallShields', target: '#agent.WAITING_FOR_TOOL.screeningCalls' },
            { guard: 'hasRunnableCalls', target: '#agent.WAITING_FOR_TOOL.executing' },
            { target: '#agent.WAITING_FOR_TOOL' },
          ],
        },

        consultingOnCalls: {
          description: "The user's own guards look at the calls, and may take their time.",
          invoke: {
            id: 'callGuards',
            src: 'consultGuards',
            input: { on: 'calls' },
            onDone: [
              { guard: 'userGuardHalts', target: 'halting', actions: 'heedUserGuards' },
              {
                guard: 'hasCallShields',
                target: '#agent.WAITING_FOR_TOOL.screeningCalls',
                actions: 'heedUserGuards',
              },
              { target: '#agent.WAITING_FOR_TOOL', actions: 'heedUserGuards' },
            ],
            onError: {
              target: '#agent.ERROR',
              actions: ['noteFailure', { type: 'because', params: { reason: 'internal' } }],
            },
          },
        },

        recovering: {
          description:
            'A cut, empty or invalid answer is mended by asking on; it costs a step like any other.',
          always: { target: 'checkingLimits' },
        },

        halting: {
          description: 'A guard has seen enough; its configuration says how the run stops.',
          entry: ['announceHalt', 'settleBatch'],
          always: [
            { guard: 'concludesOnHalt', target: 'concluding' },
            { guard: 'pausesOnHalt', target: '#agent.PAUSED' },
            { target: '#agent.ERROR' },
          ],
        },

        concluding: {
          description: 'One last request without tools, so that the run ends, or pauses, with an answer.',
          invoke: {
            id: 'conclusion',
            src: 'requestModel',
            input: { conclude: true },
            onDone: [
              { guard: 'isHeld', target: 'screeningOutput', actions: 'recordResponse' },
              { guard: 'isStoppedByStepCap', target: '#agent.MAX_STEPS', actions: 'recordResponse' },
              { guard: 'pausesOnHalt', target: '#agent.PAUSED', actions: 'recordResponse' },
              { target: '#agent.ERROR', actions: 'recordResponse' },
            ],
            onError: [
              {
                guard: 'isStoppedByStepCap',
                target: '#agent.MAX_STEPS',
                actions: ['warnOfConclusion', 'keepPartial'],
              },
              {
                guard: 'pausesOnHalt',
                target: '#agent.PAUSED',
                actions: ['warnOfConclusion', 'keepPartial'],
              },
              { target: '#agent.ERROR', actions: ['warnOfConclusion', 'keepPartial'] },
            ],
          },
        },

        ending: {
          description: 'A natural end: it beats a pending pause, but not steering that nobody has heard yet.',
          always: [
            { guard: 'hasSteering', target: 'checkingLimits' },
            {
              guard: 'isInteractive',
              target: '#agent.WAITING_FOR_INPUT.message',
              actions: { type: 'because', params: { reason: 'message' } },
            },
            { target: '#agent.COMPLETED' },
          ],
        },
      },
    },

    WAITING_FOR_TOOL: {
      description: 'The calls of one response are carried out.',
      entry: { type: 'enter', params: { state: 'WAITING_FOR_TOOL' } },
      initial: 'dispatching',
      on: {
        RESUMED: [
          {
            guard: 'isPastDeadline',
            target: '#agent.TIMED_OUT',
            actions: { type: 'because', params: { reason: 'timeout' } },
          },
          {
            guard: 'isAllInDoubt',
            target: '.dispatching',
            actions: ['closeInterruptedCalls', 'noteTools', 'startDeadline'],
          },
          {
            target: '.whereItWas',
            reenter: true,
            actions: ['closeInterruptedCalls', 'noteTools', 'startDeadline'],
          },
        ],
      },
      states: {
        whereItWas: { type: 'history', description: 'The substate that a restored run was in.' },

        screeningCalls: {
          description:
            'Tool-input shields look at the calls before any of them runs, and at what people have changed.',
          invoke: {
            id: 'callShields',
            src: 'screenCalls',
            onDone: { target: 'dispatching', actions: 'heedCallShields' },
            onError: {
              target: '#agent.ERROR',
              actions: ['noteFailure', { type: 'because', params: { reason: 'internal' } }],
            },
          },
          on: {
            TOOL_OUTPUT: { guard: 'awaitsOutput', actions: 'acceptOutput' },
          },
        },

        dispatching: {
          description: 'Calls that need nobody run first; then people and clients are asked for theirs.',
          always: [
            { guard: 'hasRunnableCalls', target: 'executing' },
            { guard: 'hasResultsToScreen', target: 'screeningResults' },
            {
              guard: 'hasCallsToApprove',
              target: '#agent.WAITING_FOR_INPUT.approval',
              actions: { type: 'because', params: { reason: 'approval' } },
            },
            { guard: 'hasCallsToScreen', target: 'screeningCalls' },
            {
              guard: 'hasClientCalls',
              target: '#agent.WAITING_FOR_INPUT.toolOutput',
              actions: { type: 'because', params: { reason: 'tool_output' } },
            },
            {
              guard: 'hasPausedChildren',
              target: '#agent.PAUSED',
              actions: { type: 'because', params: { reason: 'paused' } },
            },
            { target: 'observing' },
          ],
        },

        executing: {
          description:
            'The runnable calls run in parallel; each reports its own result. Answers to others count, too.',
          entry: 'markStarted',
          invoke: {
            id: 'tools',
            src: 'runTools',
            onDone: { target: 'dispatching', actions: 'closeStartedCalls' },
            onError: { target: 'dispatching', actions: 'closeStartedCalls' },
          },
          on: {
            TOOL_RESULT: [
              { guard: 'isTerminalDelegation', target: 'observing', actions: 'recordResult' },
              {
                guard: 'isSpentByChild',
                target: '#agent.BUDGET_EXCEEDED',
                actions: ['recordResult', 'becauseOfBudget'],
              },
              { guard: 'isLastOfBatch', target: 'observing', actions: 'recordResult' },
              { guard: 'isLastResult', target: 'dispatching', actions: 'recordResult' },
              { guard: 'isOpenCall', actions: 'recordResult' },
            ],
            CHILD_USAGE: [
              {
                guard: 'isSpentByChild',
                target: '#agent.BUDGET_EXCEEDED',
                actions: ['addChildUsage', 'becauseOfBudget'],
              },
              { guard: 'isOpenCall', actions: 'addChildUsage' },
            ],
            CHILD_RESTS: [
              { guard: 'isLastResult', target: 'dispatching', actions: 'noteChildRest' },
              { guard: 'isOpenCall', actions: 'noteChildRest' },
            ],
            BATCH_DONE: { target: 'dispatching', actions: 'closeStartedCalls' },
            APPROVE: { guard: 'awaitsApproval', actions: 'approve' },
            REJECT: { guard: 'awaitsApproval', actions: 'reject' },
            TOOL_OUTPUT: { guard: 'awaitsOutput', actions: 'acceptOutput' },
          },
        },

        screeningResults: {
          description:
            'Tool-output shields look at the results before anybody else does; anew when one more is handed in.',
          invoke: {
            id: 'resultShields',
            src: 'screenResults',
            onDone: { target: 'dispatching', actions: 'heedResultShields' },
            onError: {
              target: '#agent.ERROR',
              actions: ['noteFailure', { type: 'because', params: { reason: 'internal' } }],
            },
          },
          on: {
            APPROVE: { guard: 'awaitsApproval', actions: 'approve' },
            REJECT: { guard: 'awaitsApproval', actions: 'reject' },
            TOOL_OUTPUT: {
              guard: 'awaitsOutput',
              target: 'screeningResults',
              reenter: true,
              actions: 'acceptOutput',
            },
          },
        },

        observing: {
          description: 'All results are there; the guards look at them.',
          entry: 'judgeResults',
          always: [
            { guard: 'isHalted', target: '#agent.RUNNING.halting' },
            { guard: 'hasUserGuards', target: 'consultingOnResults' },
            { target: '#agent.RUNNING.checkingLimits', actions: 'settleBatch' },
          ],
        },

        consultingOnResults: {
          description: "The user's own guards look at the results.",
          invoke: {
            id: 'resultGuards',
            src: 'consultGuards',
            input: { on: 'results' },
            onDone: [
              { guard: 'userGuardHalts', target: '#agent.RUNNING.halting', actions: 'heedUserGuards' },
              { target: '#agent.RUNNING.checkingLimits', actions: ['heedUserGuards', 'settleBatch'] },
            ],
            onError: {
              target: '#agent.ERROR',
              actions: ['noteFailure', { type: 'because', params: { reason: 'internal' } }],
            },
          },
        },
      },
    },

    WAITING_FOR_INPUT: {
      description: 'The run rests until somebody answers; its clock stands still.',
      entry: ['settleBatch', { type: 'enter', params: { state: 'WAITING_FOR_INPUT' } }, 'holdDeadline'],
      exit: 'releaseDeadline',
      initial: 'message',
      states: {
        approval: {
          description: 'A person decides about calls; those already decided wait until all are.',
          entry: 'askForApproval',
          on: {
            APPROVE: [
              { guard: 'isLastApproval', target: '#agent.WAITING_FOR_TOOL', actions: 'approve' },
              { guard: 'awaitsApproval', actions: 'approve' },
            ],
            REJECT: [
              { guard: 'isLastApproval', target: '#agent.WAITING_FOR_TOOL', actions: 'reject' },
              { guard: 'awaitsApproval', actions: ['reject', 'settleBatch'] },
            ],
            TOOL_OUTPUT: { guard: 'awaitsOutput', actions: ['acceptOutput', 'settleBatch'] },
          },
        },

        toolOutput: {
          description: 'The client carries out calls of its own and hands in their results.',
          on: {
            TOOL_OUTPUT: [
              { guard: 'isLastOutput', target: '#agent.WAITING_FOR_TOOL', actions: 'acceptOutput' },
              { guard: 'awaitsOutput', actions: ['acceptOutput', 'settleBatch'] },
            ],
          },
        },

        message: {
          description: 'An interactive run waits for the next user message.',
          on: {
            REPLY: { target: '#agent.RUNNING', actions: 'takeReply' },
            STEER: { target: '#agent.RUNNING.checkingLimits', actions: 'queueSteering' },
          },
        },
      },
    },

    PAUSED: {
      description: 'The run rests at a safe point until it is resumed; its clock stands still.',
      entry: ['settleBatch', { type: 'enter', params: { state: 'PAUSED' } }, 'holdDeadline'],
      exit: 'releaseDeadline',
      on: {
        PAUSE: {},
        RESUME: [
          {
            guard: 'hasPausedChildren',
            target: '#agent.WAITING_FOR_TOOL',
            actions: 'resumeChildren',
          },
          { target: '#agent.RUNNING.checkingLimits', actions: 'forgetHalt' },
        ],
        STEER: [
          {
            guard: 'hasPausedChildren',
            target: '#agent.WAITING_FOR_TOOL',
            actions: ['resumeChildren', 'queueSteering'],
          },
          { target: '#agent.RUNNING.checkingLimits', actions: ['forgetHalt', 'queueSteering'] },
        ],
      },
    },

    COMPLETED: {
      type: 'final',
      description: 'The model has ended its turn.',
      entry: ['settleBatch', { type: 'finish', params: { state: 'COMPLETED' } }],
    },
    CANCELLED: {
      type: 'final',
      description: 'Somebody cancelled the run.',
      entry: ['settleBatch', { type: 'finish', params: { state: 'CANCELLED' } }],
    },
    TIMED_OUT: {
      type: 'final',
      description: 'The deadline passed.',
      entry: ['settleBatch', { type: 'finish', params: { state: 'TIMED_OUT' } }],
    },
    MAX_STEPS: {
      type: 'final',
      description: 'All steps are used.',
      entry: ['settleBatch', { type: 'finish', params: { state: 'MAX_STEPS' } }],
    },
    BUDGET_EXCEEDED: {
      type: 'final',
      description: 'Tokens or money are used up.',
      entry: ['settleBatch', { type: 'finish', params: { state: 'BUDGET_EXCEEDED' } }],
    },
    BLOCKED: {
      type: 'final',
      description: 'A shield refused the input or the answer.',
      entry: ['settleBatch', { type: 'finish', params: { state: 'BLOCKED' } }],
    },
    ERROR: {
      type: 'final',
      description: 'Something failed that the loop cannot mend, or a guard halted it.',
      entry: ['settleBatch', { type: 'finish', params: { state: 'ERROR' } }],
    },
  },
})
