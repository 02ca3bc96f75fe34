/** Code that is loaded when it is first asked for, once. What could not be loaded is tried again the next time. */
export function lazily<Module>(load: () => Promise<Module>): () => Promise<Module> {
  let loading: Promise<Module> | undefined
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return loading
  }
}
