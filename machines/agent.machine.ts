import { setup } from 'xstate'
import * as actions from './agent/actions.js'
import * as actors from './agent/actors.js'
import * as conditions from './agent/conditions.js'
import { type AgentContext, createContext } from './agent/context.js'
import type { AgentInput } from './agent/context.js'
import type { EmittedEvent } from './agent/announcements.js'
import type { AgentMachineEvent } from './agent/machine-events.js'
import type { RunResult } from './agent/run-result.js'
import { toRunResult } from './agent/to-result.js'

/**
 * The agent loop. Each top-level state is an `AgentState` that users see; the finals are how a run can end.
 *
 * Pure: context is plain JSON, time arrives on events, whatever waits is an actor. The same events give the same
 * states, so a log of events is the run.
 *
 * @example
 * // The bare machine: its events in, its states out. `agent.machine` is the same with an agent's actors.
 * const [before] = initialTransition(agentMachine, agent.createInput('Go.'))
 * const [after] = transition(agentMachine, before, { type: 'CANCEL', why: 'Not now.' })
 * console.log(after.value, after.output?.reason) // CANCELLED cancelled
 */
export const agentMachine = setup({
  types: {} as {
    context: AgentContext
    events: AgentMachineEvent
    input: AgentInput
    output: RunResult
    emitted: EmittedEvent
  },
  actors,
  guards: conditions,
  actions,
}).createMachine({
  id: 'agent',
  description: 'One run of an agent: from a user message to a final state.',
  context: ({ input }) => createContext(input),
  output: ({ context }) => toRunResult(context),
  entry: 'startDeadline',
  initial: 'RUNNING',
  on: {
    CANCEL: { target: '.CANCELLED', actions: 'keepPartial' },
    DEADLINE: { guard: 'isClockRunning', target: '.TIMED_OUT', actions: 'keepPartial' },
    STORE_FAILED: {
      target: '.ERROR',
      actions: ['keepPartial', 'noteStoreFailure', { type: 'because', params: { reason: 'store_error' } }],
    },
    'xstate.error.actor.*': {
      description: 'What waits may fail; where the loop cannot mend that, the run ends.',
      target: '.ERROR',
      actions: ['noteFailure', 'keepPartial', 'becauseOfFailure'],
    },
    LEFT: { actions: 'noteLeaving' },
    PAUSE: { actions: 'notePause' },
    RESUME: {
      guard: 'isPausing',
      description: 'A pause that the run has not taken yet is withdrawn.',
      actions: ['withdrawPause', 'resumeChildren'],
    },
    STEER: { actions: 'queueSteering' },
  },
  states: {
    RUNNING: {
      description: 'The loop thinks: it prepares a request, waits for the model, or judges what came back.',
      entry: { type: 'enter', params: { state: 'RUNNING' } },
      initial: 'preparing',
      on: {
        RESUMED: [
          { guard: 'isPastDeadline', target: '#agent.TIMED_OUT' },
          { target: '.whereItWas', reenter: true, actions: ['noteTools', 'startDeadline'] },
        ],
      },
      states: {
        whereItWas: {
          type: 'history',
          history: 'deep',
          description: 'The substate that a restored run was in.',
        },

        preparing: {
          description: 'What the model is to read is gathered, looked at, and made to fit.',
          initial: 'starting',
          states: {
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
                    actions: ['heedInputShields', 'keepShieldMessage'],
                  },
                  { guard: 'hasRetrieval', target: 'retrieving', actions: 'heedInputShields' },
                  { target: 'checkingLimits', actions: 'heedInputShields' },
                ],
              },
            },

            retrieving: {
              description: 'Memory is searched for what helps with this message.',
              invoke: {
                id: 'retrieval',
                src: 'retrieve',
                onDone: { target: 'checkingLimits', actions: 'noteRetrieved' },
              },
            },

            checkingLimits: {
              description: 'The one safe point of the loop: every limit is checked here, in this order.',
              entry: 'deliverSteering',
              always: [
                { guard: 'isPastDeadline', target: '#agent.TIMED_OUT' },
                { guard: 'isPausing', target: '#agent.PAUSED' },
                {
                  guard: 'concludesAtStepCap',
                  target: '#agent.RUNNING.asking.concluding',
                  actions: { type: 'because', params: { reason: 'max_steps' } },
                },
                { guard: 'isAtStepCap', target: '#agent.MAX_STEPS' },
                { guard: 'isBudgetSpent', target: '#agent.BUDGET_EXCEEDED' },
                { guard: 'hasUnscreenedInput', target: 'screeningInput' },
                { guard: 'fitsContext', target: 'fittingContext' },
                { guard: 'isBackingOff', target: '#agent.RUNNING.asking.backingOff' },
                { target: '#agent.RUNNING.asking.requesting' },
              ],
            },

            fittingContext: {
              description: 'The transcript is made to fit the window of the model.',
              invoke: {
                id: 'fitting',
                src: 'fitContext',
                onDone: [
                  { guard: 'isSpentBySummary', target: '#agent.BUDGET_EXCEEDED', actions: 'applyFit' },
                  { guard: 'isBackingOff', target: '#agent.RUNNING.asking.backingOff', actions: 'applyFit' },
                  { target: '#agent.RUNNING.asking.requesting', actions: 'applyFit' },
                ],
              },
            },
          },
        },

        asking: {
          description: 'The model has the word; shields look at what it says.',
          initial: 'requesting',
          states: {
            requesting: {
              description: 'One attempt at one model response.',
              invoke: {
                id: 'model',
                src: 'requestModel',
                input: { conclude: false },
                onDone: [
                  { guard: 'isHeld', target: 'screeningOutput', actions: 'recordResponse' },
                  {
                    guard: 'asksWithinBudget',
                    target: '#agent.RUNNING.judging.judgingCalls',
                    actions: 'recordResponse',
                  },
                  { target: '#agent.RUNNING.judging.accounting', actions: 'recordResponse' },
                ],
                onError: [
                  { guard: 'isRefusedByBudget', target: '#agent.BUDGET_EXCEEDED', actions: 'noteFailure' },
                  {
                    guard: 'isSpentByFailure',
                    target: '#agent.BUDGET_EXCEEDED',
                    actions: ['noteFailure', 'keepPartial'],
                  },
                  {
                    guard: 'pausesRetry',
                    target: '#agent.PAUSED',
                    actions: ['noteFailure', 'scheduleRetry'],
                  },
                  { guard: 'mayRetry', target: 'backingOff', actions: ['noteFailure', 'scheduleRetry'] },
                ],
              },
            },

            backingOff: {
              description: 'Waits out a recoverable failure before the next attempt.',
              on: { PAUSE: '#agent.PAUSED' },
              invoke: {
                id: 'backOff',
                src: 'backOff',
                input: ({ context }) => ({ until: context.backOffUntil }),
                onDone: { target: 'requesting' },
              },
            },

            concluding: {
              description: 'One last request without tools, so that the run ends, or pauses, with an answer.',
              invoke: {
                id: 'conclusion',
                src: 'requestModel',
                input: { conclude: true },
                onDone: [
                  { guard: 'isHeld', target: 'screeningOutput', actions: 'recordResponse' },
                  { target: '#agent.RUNNING.judging.stopping', actions: 'recordResponse' },
                ],
                onError: {
                  target: '#agent.RUNNING.judging.stopping',
                  actions: ['warnOfConclusion', 'keepPartial'],
                },
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
                    actions: ['tellOutputFindings', 'keepShieldMessage'],
                  },
                  {
                    guard: 'isConclusion',
                    target: '#agent.RUNNING.judging.stopping',
                    actions: ['tellOutputFindings', 'releaseAnswer'],
                  },
                  {
                    target: '#agent.RUNNING.judging.accounting',
                    actions: ['tellOutputFindings', 'releaseAnswer'],
                  },
                ],
              },
            },
          },
        },

        judging: {
          description: 'What came back decides where the run goes.',
          initial: 'accounting',
          states: {
            accounting: {
              description: 'A response is in the transcript and paid for; what it is decides where it leads.',
              always: [
                { guard: 'isOverBudget', target: '#agent.BUDGET_EXCEEDED' },
                { guard: 'hasCalls', target: 'judgingCalls' },
                { guard: 'mayContinue', target: 'recovering', actions: 'continueAnswer' },
                {
                  guard: 'isTruncatedCall',
                  target: '#agent.ERROR',
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
                { target: 'ending' },
              ],
            },

            judgingCalls: {
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
              },
            },

            recovering: {
              description:
                'A cut, empty or invalid answer is mended by asking on; it costs a step like any other.',
              always: '#agent.RUNNING.preparing.checkingLimits',
            },

            halting: {
              description: 'A guard has seen enough; the model may have a last word.',
              entry: ['announceHalt', 'settleBatch'],
              always: [
                { guard: 'concludesOnHalt', target: '#agent.RUNNING.asking.concluding' },
                { target: 'stopping' },
              ],
            },

            stopping: {
              description: 'What has stopped the run, a guard or the step limit, says where that leads.',
              always: [
                { guard: 'isStoppedByStepCap', target: '#agent.MAX_STEPS' },
                { guard: 'pausesOnHalt', target: '#agent.PAUSED' },
                { target: '#agent.ERROR' },
              ],
            },

            ending: {
              description:
                'A natural end: it beats a pending pause, but not steering that nobody has heard yet.',
              entry: ['becauseOfAnswer', 'settleBatch'],
              always: [
                { guard: 'hasSteering', target: '#agent.RUNNING.preparing.checkingLimits' },
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
      },
    },

    WAITING_FOR_TOOL: {
      description: 'The calls of one response are carried out. Answers that come meanwhile count, too.',
      entry: { type: 'enter', params: { state: 'WAITING_FOR_TOOL' } },
      initial: 'dispatching',
      on: {
        RESUMED: [
          { guard: 'isPastDeadline', target: '#agent.TIMED_OUT' },
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
        APPROVE: { guard: 'awaitsApproval', actions: 'approve' },
        REJECT: { guard: 'awaitsApproval', actions: 'reject' },
        TOOL_OUTPUT: { guard: 'awaitsOutput', actions: 'acceptOutput' },
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
            { guard: 'hasPausedChildren', target: '#agent.PAUSED' },
            { target: 'judgingResults' },
          ],
        },

        executing: {
          description: 'The runnable calls run in parallel; each reports its own result.',
          entry: 'markStarted',
          invoke: {
            id: 'tools',
            src: 'runTools',
            onDone: { target: 'dispatching', actions: 'closeStartedCalls' },
            onError: { target: 'dispatching', actions: 'closeStartedCalls' },
          },
          on: {
            TOOL_RESULT: [
              { guard: 'isTerminalDelegation', target: 'judgingResults', actions: 'recordResult' },
              { guard: 'isSpentByChild', target: '#agent.BUDGET_EXCEEDED', actions: 'recordResult' },
              { guard: 'isLastOfBatch', target: 'judgingResults', actions: 'recordResult' },
              { guard: 'isLastResult', target: 'dispatching', actions: 'recordResult' },
              { guard: 'isOpenCall', actions: 'recordResult' },
            ],
            CHILD_USAGE: [
              { guard: 'isSpentByChild', target: '#agent.BUDGET_EXCEEDED', actions: 'addChildUsage' },
              { guard: 'isOpenCall', actions: 'addChildUsage' },
            ],
            CHILD_RESTS: [
              { guard: 'isLastResult', target: 'dispatching', actions: 'noteChildRest' },
              { guard: 'isOpenCall', actions: 'noteChildRest' },
            ],
            BATCH_DONE: { target: 'dispatching', actions: 'closeStartedCalls' },
          },
        },

        screeningResults: {
          description:
            'Shields look at the results, and at why people refuse calls, before anybody else does; anew when one more comes.',
          invoke: {
            id: 'resultShields',
            src: 'screenResults',
            onDone: { target: 'dispatching', actions: 'heedResultShields' },
          },
          on: {
            REJECT: {
              guard: 'awaitsApproval',
              target: 'screeningResults',
              reenter: true,
              actions: 'reject',
            },
            TOOL_OUTPUT: {
              guard: 'awaitsOutput',
              target: 'screeningResults',
              reenter: true,
              actions: 'acceptOutput',
            },
          },
        },

        judgingResults: {
          description: 'All results are there; the guards look at them.',
          entry: 'judgeResults',
          always: [
            { guard: 'isHalted', target: '#agent.RUNNING.judging.halting' },
            { guard: 'hasUserGuards', target: 'consultingOnResults' },
            { target: '#agent.RUNNING.preparing.checkingLimits', actions: 'settleBatch' },
          ],
        },

        consultingOnResults: {
          description: "The user's own guards look at the results.",
          invoke: {
            id: 'resultGuards',
            src: 'consultGuards',
            input: { on: 'results' },
            onDone: [
              {
                guard: 'userGuardHalts',
                target: '#agent.RUNNING.judging.halting',
                actions: 'heedUserGuards',
              },
              {
                target: '#agent.RUNNING.preparing.checkingLimits',
                actions: ['heedUserGuards', 'settleBatch'],
              },
            ],
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
            STEER: { target: '#agent.RUNNING.preparing.checkingLimits', actions: 'queueSteering' },
          },
        },
      },
    },

    PAUSED: {
      description: 'The run rests at a safe point until it is resumed; its clock stands still.',
      entry: [
        'becauseOfPause',
        'settleBatch',
        { type: 'enter', params: { state: 'PAUSED' } },
        'holdDeadline',
      ],
      exit: 'releaseDeadline',
      on: {
        PAUSE: {},
        RESUME: [
          {
            guard: 'hasPausedChildren',
            target: '#agent.WAITING_FOR_TOOL',
            actions: 'resumeChildren',
          },
          { target: '#agent.RUNNING.preparing.checkingLimits', actions: 'forgetHalt' },
        ],
        STEER: [
          {
            guard: 'hasPausedChildren',
            target: '#agent.WAITING_FOR_TOOL',
            actions: ['resumeChildren', 'queueSteering'],
          },
          { target: '#agent.RUNNING.preparing.checkingLimits', actions: ['forgetHalt', 'queueSteering'] },
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
      entry: [
        { type: 'because', params: { reason: 'cancelled' } },
        'settleBatch',
        { type: 'finish', params: { state: 'CANCELLED' } },
      ],
    },
    TIMED_OUT: {
      type: 'final',
      description: 'The deadline passed.',
      entry: [
        { type: 'because', params: { reason: 'timeout' } },
        'settleBatch',
        { type: 'finish', params: { state: 'TIMED_OUT' } },
      ],
    },
    MAX_STEPS: {
      type: 'final',
      description: 'All steps are used.',
      entry: [
        { type: 'because', params: { reason: 'max_steps' } },
        'settleBatch',
        { type: 'finish', params: { state: 'MAX_STEPS' } },
      ],
    },
    BUDGET_EXCEEDED: {
      type: 'final',
      description: 'Tokens or money are used up.',
      entry: ['becauseOfBudget', 'settleBatch', { type: 'finish', params: { state: 'BUDGET_EXCEEDED' } }],
    },
    BLOCKED: {
      type: 'final',
      description: 'A shield refused the input or the answer.',
      entry: [
        { type: 'because', params: { reason: 'shield' } },
        'settleBatch',
        { type: 'finish', params: { state: 'BLOCKED' } },
      ],
    },
    ERROR: {
      type: 'final',
      description: 'Something failed that the loop cannot mend, or a guard halted it.',
      entry: ['settleBatch', { type: 'finish', params: { state: 'ERROR' } }],
    },
  },
})
