// What each library is, which of its documented ways the second column takes, and what it does not claim. An adapter uses
// these; the runner reads them without the library.
export const facts = {
  statewright: {
    title: 'Statewright',
    packages: ['statewright'],
    way: 'a store (`memoryStore`); in loops, `limits.maxSteps: 25`',
    page: 'docs/configuration.md, docs/sessions.md',
  },
  right: { title: 'the right loop', packages: [] },
  wrong: { title: 'the wrong loops', packages: [] },
}
