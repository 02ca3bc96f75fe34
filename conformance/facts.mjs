// Facts about each library, with its identity, the documented features that the second variant uses with their pages, and the features that it
// does not claim. The runner reads this file without loading the library.
const both = (lacks) => ({ defaults: lacks, documented: lacks })
const noIdle = { idleLimit: 'no time limit between two pieces of a stream is documented' }
const noDeadline = { deadline: 'no time limit of a run is documented' }
const noSession = {
  session: 'the caller keeps the history, and takes care that one run reads what another leaves',
}
const noResume = { resume: 'no run is documented to go on in another process after a crash' }
const noBranches = {
  forks: 'branches are of the sessions of its harness, and the adapter is of its agent alone',
}
const noForks = { forks: 'no fork of a conversation is documented: the caller copies the messages' }
const noSubAgents = {
  subAgents: 'agents below an agent are tools of the caller, whose usage the caller counts',
}
const noPeople = {
  approvals: 'a hook decides over a call while the run works; no run rests until a person has answered',
}
const noBudget = { tokenBudget: 'no budget of tokens is documented' }
const lacksOfPi = {
  ...noIdle,
  ...noBudget,
  ...noDeadline,
  ...noPeople,
  ...noSubAgents,
  ...noResume,
  ...noBranches,
}

export const facts = {
  ai: {
    title: 'AI SDK',
    packages: ['ai', '@ai-sdk/openai-compatible'],
    way: '`includeUsage`; messages collected with `onStepEnd`; `stopWhen` in loops; `experimental_toolApprovalSecret`',
    page: 'https://ai-sdk.dev/docs/agents/loop-control',
    variants: both({ ...noSession, ...noSubAgents, ...noResume, ...noForks }),
  },
  agents: {
    title: 'OpenAI Agents',
    packages: ['@openai/agents'],
    way: 'a `MemorySession`; `toolNotFoundBehavior`; `maxTurns` in loops',
    page: 'https://openai.github.io/openai-agents-js/guides/sessions/',
    variants: {
      defaults: { ...noIdle, ...noBudget, ...noDeadline, ...noSession, ...noResume, ...noForks },
      documented: { ...noIdle, ...noBudget, ...noDeadline, ...noResume, ...noForks },
    },
  },
  langchain: {
    title: 'LangChain, LangGraph',
    packages: ['langchain', '@langchain/openai'],
    way: 'a `MemorySaver` with a thread; `modelCallLimitMiddleware`. Both variants use one retry, because six retries take minutes',
    page: 'https://docs.langchain.com/oss/javascript/langchain/short-term-memory',
    variants: {
      defaults: {
        ...noIdle,
        ...noBudget,
        ...noSession,
        ...noSubAgents,
        approvals: 'approvals need a checkpointer',
        resume: 'a run goes on from a checkpointer',
        forks: 'a thread is forked at a checkpoint',
        stepLimit: '`recursionLimit` counts steps of the graph, not requests',
      },
      documented: {
        ...noIdle,
        ...noBudget,
        ...noSubAgents,
        effectOnce: 'the page on durable execution asks for effects that may be repeated',
      },
    },
  },
  mastra: {
    title: 'Mastra',
    packages: ['@mastra/core'],
    way: 'messages collected with `onStepFinish`; `maxRetries: 2`; `maxSteps` in loops',
    page: 'https://mastra.ai/reference/streaming/agents/stream',
    variants: both({
      ...noIdle,
      ...noBudget,
      ...noDeadline,
      ...noSession,
      forks: 'threads are cloned by a package of its own, `@mastra/memory`, which is not installed here',
      resume:
        'durable agents (beta) recover runs from storages of other packages, which are not installed here',
    }),
  },
  strands: {
    title: 'Strands',
    packages: ['@strands-agents/sdk'],
    way: '`limits` of a call in loops; a `SessionManager` and `checkpointing` (experimental) in resume',
    page: 'https://strandsagents.com/docs/user-guide/concepts/agents/agent-loop/',
    variants: {
      defaults: { ...noIdle, ...noDeadline, resume: 'a run goes on from a session and a checkpoint' },
      documented: {
        ...noIdle,
        ...noDeadline,
        effectOnce: 'which calls of a cycle are executed again is documented as up to the tool executor',
        storedDecisions: 'questions and checkpoints are documented apart from each other',
      },
    },
  },
  pi: {
    title: 'pi',
    packages: ['@earendil-works/pi-agent-core'],
    way: '`maxRetries: 2`; `finishTurn`, which ends a run, in loops',
    page: 'https://github.com/earendil-works/pi/tree/main/packages/agent',
    variants: {
      defaults: { ...lacksOfPi, retries: 'retries are an option (`maxRetries`)' },
      documented: lacksOfPi,
    },
  },
  statewright: {
    title: 'Statewright',
    packages: ['statewright'],
    way: 'a `memoryStore`; `limits.maxSteps` in loops',
    page: 'docs/configuration.md, docs/sessions.md',
    variants: {
      defaults: {
        savedApprovals: 'waiting runs need a store',
        resume: 'runs go on from a store',
        forks: 'forks need a store',
      },
      documented: {},
    },
  },
}
