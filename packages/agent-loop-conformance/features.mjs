/** The features that a case can require. An adapter lists missing features in `lacks`, each with a reason. */
export const features = {
  usage: 'the result of a run has token counts',
  retries: 'a failed request is sent again',
  stepLimit: 'a run has a limit of model requests (`limits.steps`)',
  tokenBudget: 'a run has a limit of tokens (`limits.tokens`)',
  deadline: 'a run has a time limit (`limits.deadlineMs`)',
  idleLimit: 'a stream has a time limit between two chunks (`limits.idleMs`)',
  session: 'two runs of one conversation that overlap both end in the history',
  subAgents: 'a tool can be an agent (`delegate`), and its usage is counted',
  approvals: 'a run waits for a person before a tool with `asks` executes',
  savedApprovals: 'a waiting run can be saved and read again (`save`, `saved`)',
  forks: 'a conversation can be forked (`fork`)',
  resume: 'another process continues a run after a crash (`openStored`)',
  effectOnce: 'a call that may have had an effect does not run again after a crash',
  storedDecisions: 'an approval and its decision survive a crash (`openStored(…).approve`)',
}

const names = Object.keys(features)

/** Throws when `lacks` names an unknown feature. */
export function checkLacks(lacks, where) {
  for (const name of Object.keys(lacks)) {
    if (!names.includes(name))
      throw new Error(`${where}: unknown feature '${name}'. The features are ${names.join(', ')}.`)
  }
}
