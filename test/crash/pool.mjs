/** The results of `work` for all `items`, in order, with at most `width` in progress. */
export async function inParallel(items, width, work) {
  const results = []
  const queue = items.entries()
  const worker = async () => {
    for (const [index, item] of queue) results[index] = await work(item, index)
  }
  await Promise.all(Array.from({ length: width }, worker))
  return results
}
