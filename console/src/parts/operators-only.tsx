/** Tells the holder of a namespace's key that a part of the page is for operators. */
export function OperatorsOnly({ what }: { what: string }) {
  return (
    <p>
      {what} with an operator's key only; <code>gpuwhisk operator-key</code> shows it.
    </p>
  );
}
