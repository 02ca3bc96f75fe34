import { setup } from 'xstate'
import * as actions from './agent/actions.js'
import * as actors from './agent/missing-actors.js'
import * as conditions from './agent/conditions.js'
import { type AgentContext, type AgentInput, createContext, type AgentMachineEvent } from './agent/context.js'
import type { EmittedEvent } from './agent/announcements.js'
import type { RunResult } from './agent/run-result.js'
import { toRunResult } from './agent/to-result.js'

/**
 * The agent loop. Each top-level state is a public `AgentState`. A run ends in one of the final states.
 *
 * The machine is pure: its context is plain JSON, time comes from events, and all asynchronous work is in actors. The
 * same events always produce the same states, so the event log fully describes a run.
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
  description: 'One run of an agent, from a user message to a final state.',
  context: ({ input }) => createContext(input),
  output: ({ context }) => toRunResult(context),
  entry: 'startDeadline',
  initial: 'RUNNING',
  on: {
    CANCEL: { target: '.CANCELLED', actions: 'keepPartial' },
    DEADLINE: { guard: 'isClockRunning', target: '.TIMED_OUT', actions: 'keepPartial' },
    STORE_FAILED: {
      target: '.ERROR',
      actions: ['keepPartial', 'noteStoreFailure', { type: 'setReason', params: { reason: 'store_error' } }],
    },
    'xstate.error.actor.*': {
      description: 'An actor failed with an unrecoverable error, so the run ends.',
      target: '.ERROR',
      actions: ['noteFailure', 'keepPartial', 'setFailureReason'],
    },
    RELEASED: { actions: 'noteRelease' },
    PAUSE: { actions: 'notePause' },
    RESUME: {
      guard: 'isPausing',
      description: 'Withdraws a pause that has not taken effect yet.',
      actions: ['withdrawPause', 'resumeChildren', 'noteWakeTime'],
    },
    STEER: { actions: 'queueSteering' },
    GRANT: { actions: 'takeGrant' },
    REVOKE: { guard: 'revokesGrant', actions: 'revokeGrant' },
  },
  states: {
    RUNNING: {
      description: 'The run prepares a request, waits for the model, or judges its response.',
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
          description: 'The substate in which a restored run continues.',
        },

        preparing: {
          description: "Collects and screens the next request's input, and fits it into the context window.",
          initial: 'starting',
          states: {
            starting: {
              description: 'Adds the user message to the transcript.',
              entry: 'takeInput',
              always: [
                { guard: 'hasInputShields', target: 'screeningInput' },
                { guard: 'hasRetrieval', target: 'retrieving' },
                { target: 'checkingLimits' },
              ],
            },

            screeningInput: {
              description: 'Input shields screen the user message before the model reads it.',
              invoke: {
                id: 'inputShields',
                src: 'screenInput',
                onDone: [
                  {
                    guard: 'isBlocked',
                    target: '#agent.BLOCKED',
                    actions: ['applyInputScreening', 'keepShieldMessage'],
                  },
                  { guard: 'hasRetrieval', target: 'retrieving', actions: 'applyInputScreening' },
                  { target: 'checkingLimits', actions: 'applyInputScreening' },
                ],
              },
            },

            retrieving: {
              description: 'Searches memory for snippets about the user message.',
              invoke: {
                id: 'retrieval',
                src: 'retrieve',
                onDone: { target: 'checkingLimits', actions: 'noteRetrieved' },
                onError: {
                  guard: 'isRefusedByBudget',
                  target: '#agent.BUDGET_EXCEEDED',
                  actions: 'noteFailure',
                },
              },
            },

            checkingLimits: {
              id: 'checkingLimits',
              description: 'The safe point before each request. All limits are checked here, in this order.',
              entry: 'deliverSteering',
              always: [
                { guard: 'isPastDeadline', target: '#agent.TIMED_OUT' },
                { guard: 'isPausing', target: '#agent.PAUSED' },
                {
                  guard: 'concludesAtStepCap',
                  target: '#concluding',
                  actions: { type: 'setReason', params: { reason: 'max_steps' } },
                },
                { guard: 'isAtStepCap', target: '#agent.MAX_STEPS' },
                {
                  guard: 'concludesAtCallCap',
                  target: '#concluding',
                  actions: { type: 'setReason', params: { reason: 'max_tool_calls' } },
                },
                { guard: 'isOverCallCap', target: '#agent.MAX_STEPS' },
                { guard: 'isBudgetSpent', target: '#agent.BUDGET_EXCEEDED' },
                { guard: 'isAsleep', target: '#agent.PAUSED' },
                { guard: 'hasUnclearedInput', target: 'screeningInput' },
                { guard: 'concludesNearBudget', target: '#concluding', actions: 'setNearReason' },
                { guard: 'asksForPlan', target: 'planningStep' },
                { guard: 'hasContextFitting', target: 'fittingContext' },
                { guard: 'isBackingOff', target: '#backingOff' },
                { target: '#requesting' },
              ],
            },

            planningStep: {
              description: 'prepareStep chooses the model, tools and messages of the next request.',
              invoke: {
                id: 'plan',
                src: 'prepareStep',
                onDone: { target: 'checkingLimits', actions: 'notePlan' },
              },
            },

            fittingContext: {
              description: 'Fits the transcript into the context window.',
              invoke: {
                id: 'fitting',
                src: 'fitContext',
                onDone: [
                  { guard: 'isSpentBySummary', target: '#agent.BUDGET_EXCEEDED', actions: 'applyFit' },
                  { guard: 'isBackingOff', target: '#backingOff', actions: 'applyFit' },
                  { target: '#requesting', actions: 'applyFit' },
                ],
              },
            },
          },
        },

        asking: {
          description: 'Waits for the model. Output shields screen its answer.',
          initial: 'requesting',
          states: {
            requesting: {
              id: 'requesting',
              description: 'One attempt to get a model response.',
              invoke: {
                id: 'model',
                src: 'requestModel',
                input: { conclude: false },
                onDone: [
                  { guard: 'needsOutputScreening', target: 'screeningOutput', actions: 'recordResponse' },
                  {
                    guard: 'asksWithinBudget',
                    target: '#agent.RUNNING.judging.judgingCalls',
                    actions: 'recordResponse',
                  },
                  { target: '#accounting', actions: 'recordResponse' },
                ],
                onError: [
                  {
                    guard: 'waitsForBudget',
                    target: '#agent.PAUSED',
                    actions: ['noteFailure', 'sleepForBudget'],
                  },
                  { guard: 'isRefusedByBudget', target: '#agent.BUDGET_EXCEEDED', actions: 'noteFailure' },
                  {
                    guard: 'isSpentByFailure',
                    target: '#agent.BUDGET_EXCEEDED',
                    actions: ['noteFailure', 'keepPartial'],
                  },
                  {
                    guard: 'maySendWithout',
                    target: 'requesting',
                    reenter: true,
                    actions: 'leaveOutRefused',
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
              id: 'backingOff',
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
              id: 'concluding',
              description: 'One last request without tools, so that the run ends, or pauses, with an answer.',
              invoke: {
                id: 'conclusion',
                src: 'requestModel',
                input: { conclude: true },
                onDone: [
                  { guard: 'needsOutputScreening', target: 'screeningOutput', actions: 'recordResponse' },
                  { target: '#stopping', actions: 'recordResponse' },
                ],
                onError: [
                  {
                    guard: 'maySendWithout',
                    target: 'concluding',
                    reenter: true,
                    actions: 'leaveOutRefused',
                  },
                  { target: '#stopping', actions: ['warnOfConclusion', 'keepPartial'] },
                ],
              },
            },

            screeningOutput: {
              id: 'screeningOutput',
              description: 'Output shields screen the answer before it is emitted.',
              invoke: {
                id: 'outputShields',
                src: 'screenOutput',
                onDone: [
                  {
                    guard: 'isBlocked',
                    target: '#agent.BLOCKED',
                    actions: ['emitOutputFindings', 'keepShieldMessage'],
                  },
                  {
                    guard: 'isConclusion',
                    target: '#stopping',
                    actions: ['emitOutputFindings', 'releaseAnswer'],
                  },
                  { target: '#accounting', actions: ['emitOutputFindings', 'releaseAnswer'] },
                ],
              },
            },
          },
        },

        judging: {
          description: 'Decides what follows the response.',
          initial: 'accounting',
          states: {
            accounting: {
              id: 'accounting',
              description:
                'The response is in the transcript and its usage is counted. Its kind decides the next state.',
              always: [
                { guard: 'isOverBudget', target: '#agent.BUDGET_EXCEEDED' },
                { guard: 'hasCalls', target: 'judgingCalls' },
                { guard: 'mayContinue', target: 'recovering', actions: 'continueAnswer' },
                {
                  guard: 'isTruncatedCall',
                  target: '#agent.ERROR',
                  actions: { type: 'setReason', params: { reason: 'max_tokens' } },
                },
                { guard: 'mayReprompt', target: 'recovering', actions: 'reprompt' },
                { guard: 'mayRetryEmptyAnswer', target: 'recovering', actions: 'retryEmptyAnswer' },
                {
                  guard: 'isEmpty',
                  target: '#agent.ERROR',
                  actions: { type: 'setReason', params: { reason: 'empty_response' } },
                },
                { guard: 'mayRepair', target: 'recovering', actions: 'askForRepair' },
                {
                  guard: 'isInvalid',
                  target: '#agent.ERROR',
                  actions: { type: 'setReason', params: { reason: 'invalid_output' } },
                },
                { target: 'ending' },
              ],
            },

            judgingCalls: {
              description: 'The guards check the calls before any of them runs.',
              entry: 'judgeCalls',
              always: [
                { guard: 'isHalted', target: 'halting' },
                { guard: 'consultsOnCalls', target: 'consultingOnCalls' },
                { guard: 'hasCallShields', target: '#screeningCalls' },
                { guard: 'hasRunnableCalls', target: '#agent.WAITING_FOR_TOOL.executing' },
                { target: '#agent.WAITING_FOR_TOOL' },
              ],
            },

            consultingOnCalls: {
              description: 'Custom guards check the calls. They can be asynchronous.',
              invoke: {
                id: 'callGuards',
                src: 'consultGuards',
                input: { on: 'calls' },
                onDone: [
                  { guard: 'userGuardHalts', target: 'halting', actions: 'applyUserGuards' },
                  { guard: 'hasCallShields', target: '#screeningCalls', actions: 'applyUserGuards' },
                  { target: '#agent.WAITING_FOR_TOOL', actions: 'applyUserGuards' },
                ],
              },
            },

            recovering: {
              description: 'Asks again after a truncated, empty or invalid answer. This counts as a step.',
              always: '#checkingLimits',
            },

            halting: {
              id: 'halting',
              description: 'A guard halts the run. The model may give a final answer.',
              entry: ['announceHalt', 'settleBatch'],
              always: [{ guard: 'concludesOnHalt', target: '#concluding' }, { target: 'stopping' }],
            },

            stopping: {
              id: 'stopping',
              description: 'The guard or cap that stopped the run decides the next state.',
              always: [
                { guard: 'isStoppedByCap', target: '#agent.MAX_STEPS' },
                { guard: 'isStoppedByBudget', target: '#agent.BUDGET_EXCEEDED' },
                { guard: 'pausesOnHalt', target: '#agent.PAUSED' },
                { target: '#agent.ERROR' },
              ],
            },

            ending: {
              description:
                'The model ended its turn. This takes precedence over a pending pause, but not over undelivered steering.',
              entry: ['setAnswerReason', 'settleBatch'],
              always: [
                { guard: 'hasSteering', target: '#checkingLimits' },
                {
                  guard: 'isInteractive',
                  target: '#agent.WAITING_FOR_INPUT.message',
                  actions: { type: 'setReason', params: { reason: 'message' } },
                },
                { target: '#agent.COMPLETED' },
              ],
            },
          },
        },
      },
    },

    WAITING_FOR_TOOL: {
      description: 'Runs the calls of one response. Also accepts answers that arrive in the meantime.',
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
        APPROVAL_EXPIRED: [
          { guard: 'cancelsOnExpiry', target: '#agent.CANCELLED', actions: 'expireCalls' },
          { guard: 'hasLateCalls', actions: 'expireCalls' },
        ],
        TOOL_OUTPUT: { guard: 'awaitsOutput', actions: 'acceptOutput' },
        REVOKE: { guard: 'revokesApproval', actions: 'revokeApproval' },
      },
      states: {
        whereItWas: { type: 'history', description: 'The substate in which a restored run continues.' },

        screeningCalls: {
          id: 'screeningCalls',
          description:
            'Tool-input shields screen the calls before any of them runs, including arguments that people edited.',
          invoke: {
            id: 'callShields',
            src: 'screenCalls',
            onDone: { target: 'dispatching', actions: 'applyCallScreening' },
          },
        },

        dispatching: {
          description: 'Calls that need no answer run first. Then the run waits for people and clients.',
          always: [
            { guard: 'cancelsOnExpiry', target: '#agent.CANCELLED', actions: 'expireCalls' },
            { guard: 'hasLateCalls', target: 'dispatching', reenter: true, actions: 'expireCalls' },
            { guard: 'hasRunnableCalls', target: 'executing' },
            { guard: 'hasResultsToScreen', target: 'screeningResults' },
            {
              guard: 'hasCallsToApprove',
              target: '#agent.WAITING_FOR_INPUT.approval',
              actions: { type: 'setReason', params: { reason: 'approval' } },
            },
            { guard: 'hasCallsToScreen', target: 'screeningCalls' },
            {
              guard: 'hasClientCalls',
              target: '#agent.WAITING_FOR_INPUT.toolOutput',
              actions: { type: 'setReason', params: { reason: 'tool_output' } },
            },
            { guard: 'hasPausedChildren', target: '#agent.PAUSED', actions: 'noteSleep' },
            { target: 'judgingResults' },
          ],
        },

        executing: {
          description: 'The runnable calls run in parallel. Each reports its own result.',
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
            TOOLS_LOADED: { guard: 'isOpenCall', actions: 'loadTools' },
            CHILD_USAGE: [
              { guard: 'isSpentByChild', target: '#agent.BUDGET_EXCEEDED', actions: 'addChildUsage' },
              { guard: 'isOpenCall', actions: 'addChildUsage' },
            ],
            CHILD_WAITING: [
              { guard: 'isLastResult', target: 'dispatching', actions: 'noteChildRest' },
              { guard: 'isOpenCall', actions: 'noteChildRest' },
            ],
            SKILL_CHANGED: { guard: 'isOpenCall', actions: 'noteSkillChange' },
            HANDLE_SAVED: { guard: 'isOpenCall', actions: 'noteHandle' },
            HANDED_OFF: { guard: 'isOpenCall', actions: 'noteHandoff' },
            GRANT_ENDED: [
              { guard: 'isLastResult', target: 'dispatching', actions: 'endGrant' },
              { guard: 'isOpenCall', actions: 'endGrant' },
            ],
            BATCH_DONE: { target: 'dispatching', actions: 'closeStartedCalls' },
          },
        },

        screeningResults: {
          description:
            'Shields screen results and rejection reasons before they are emitted, and again when another result arrives.',
          invoke: {
            id: 'resultShields',
            src: 'screenResults',
            onDone: { target: 'dispatching', actions: 'applyResultScreening' },
          },
          on: {
            REJECT: { guard: 'awaitsApproval', target: 'screeningResults', reenter: true, actions: 'reject' },
            TOOL_OUTPUT: {
              guard: 'awaitsOutput',
              target: 'screeningResults',
              reenter: true,
              actions: 'acceptOutput',
            },
          },
        },

        judgingResults: {
          description: 'All results have arrived. The guards check them. One of them may be the answer.',
          entry: 'judgeResults',
          always: [
            { guard: 'isHalted', target: '#halting' },
            { guard: 'consultsOnResults', target: 'consultingOnResults' },
            { guard: 'hasResultToClear', target: '#screeningOutput', actions: ['takeResult', 'settleBatch'] },
            { guard: 'isAnswered', target: '#accounting', actions: ['takeResult', 'settleBatch'] },
            { target: '#checkingLimits', actions: ['noteSleep', 'settleBatch'] },
          ],
        },

        consultingOnResults: {
          description: 'Custom guards check the results, and `stopWhen` decides whether the run ends.',
          invoke: {
            id: 'resultGuards',
            src: 'consultGuards',
            input: { on: 'results' },
            onDone: [
              { guard: 'userGuardHalts', target: '#halting', actions: 'applyUserGuards' },
              {
                guard: 'hasResultToClear',
                target: '#screeningOutput',
                actions: ['applyUserGuards', 'takeResult', 'settleBatch'],
              },
              {
                guard: 'isAnswered',
                target: '#accounting',
                actions: ['applyUserGuards', 'takeResult', 'settleBatch'],
              },
              { target: '#checkingLimits', actions: ['applyUserGuards', 'noteSleep', 'settleBatch'] },
            ],
          },
        },
      },
    },

    WAITING_FOR_INPUT: {
      description: 'The run rests until it receives an answer. Its deadline is suspended.',
      entry: ['settleBatch', { type: 'enter', params: { state: 'WAITING_FOR_INPUT' } }, 'holdDeadline'],
      exit: 'releaseDeadline',
      initial: 'message',
      on: { APPROVAL_EXPIRED: { guard: 'hasLateCalls', target: '#agent.WAITING_FOR_TOOL' } },
      states: {
        approval: {
          description:
            'People approve or reject calls. The batch continues once every call has been decided. Expired calls continue immediately.',
          entry: 'askPeople',
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
            GRANT: { guard: 'startsCalls', target: '#agent.WAITING_FOR_TOOL', actions: 'takeGrant' },
            REVOKE: { guard: 'revokesApproval', actions: 'revokeApproval' },
          },
        },

        toolOutput: {
          description:
            'The client runs its calls and returns their results. People answer questions from tool servers.',
          entry: 'askPeople',
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
            STEER: { target: '#checkingLimits', actions: 'queueSteering' },
          },
        },
      },
    },

    PAUSED: {
      description:
        'The run rests at a safe point until it is resumed or its wake time arrives. Its deadline is suspended.',
      entry: [
        'setPauseReason',
        'settleBatch',
        { type: 'enter', params: { state: 'PAUSED' } },
        'holdDeadline',
      ],
      exit: ['releaseDeadline', 'forgetSleep'],
      on: {
        PAUSE: {},
        RESUME: [
          { guard: 'isForLater', actions: ['forgetHalt', 'postpone'] },
          { guard: 'hasPausedChildren', target: '#agent.WAITING_FOR_TOOL', actions: 'resumeChildren' },
          { target: '#checkingLimits', actions: 'forgetHalt' },
        ],
        STEER: [
          {
            guard: 'hasPausedChildren',
            target: '#agent.WAITING_FOR_TOOL',
            actions: ['resumeChildren', 'queueSteering'],
          },
          { target: '#checkingLimits', actions: ['forgetHalt', 'queueSteering'] },
        ],
      },
    },

    COMPLETED: {
      type: 'final',
      description: 'The model ended its turn.',
      entry: ['settleBatch', { type: 'finish', params: { state: 'COMPLETED' } }],
    },
    CANCELLED: {
      type: 'final',
      description: 'The run was cancelled, or a question expired that cancels it.',
      entry: ['setCancelReason', 'settleBatch', { type: 'finish', params: { state: 'CANCELLED' } }],
    },
    TIMED_OUT: {
      type: 'final',
      description: 'The deadline passed.',
      entry: [
        { type: 'setReason', params: { reason: 'timeout' } },
        'settleBatch',
        { type: 'finish', params: { state: 'TIMED_OUT' } },
      ],
    },
    MAX_STEPS: {
      type: 'final',
      description: 'The run has used all of its steps or tool calls.',
      entry: ['setCapReason', 'settleBatch', { type: 'finish', params: { state: 'MAX_STEPS' } }],
    },
    BUDGET_EXCEEDED: {
      type: 'final',
      description: 'The token or cost budget is used up.',
      entry: ['setBudgetReason', 'settleBatch', { type: 'finish', params: { state: 'BUDGET_EXCEEDED' } }],
    },
    BLOCKED: {
      type: 'final',
      description: 'A shield refused the input or the answer.',
      entry: [
        { type: 'setReason', params: { reason: 'shield' } },
        'settleBatch',
        { type: 'finish', params: { state: 'BLOCKED' } },
      ],
    },
    ERROR: {
      type: 'final',
      description: 'An unrecoverable failure or a guard ended the run.',
      entry: ['settleBatch', { type: 'finish', params: { state: 'ERROR' } }],
    },
  },
})
