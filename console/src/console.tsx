import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { link } from './live.js';
import { hrefOf, route } from './route.js';
import { session, signOut } from './session.js';
import { ActivationPage } from './pages/activation.js';
import { ActivationsPage } from './pages/activations.js';
import { ClusterPage } from './pages/cluster.js';
import { CostPage } from './pages/cost.js';
import { DevicePage } from './pages/device.js';
import { FunctionPage } from './pages/function.js';
import { FunctionsPage } from './pages/functions.js';
import { NewFunctionPage } from './pages/new-function.js';
import { JobPage, JobsPage } from './pages/jobs.js';
import { OverviewPage } from './pages/overview.js';
import { PoliciesPage } from './pages/policies.js';
import { QueuePage } from './pages/queue.js';
import { SignInPage } from './pages/sign-in.js';

const pages = [
  { name: 'Overview', at: '' },
  { name: 'Queue', at: 'queue' },
  { name: 'Functions', at: 'functions' },
  { name: 'Activations', at: 'activations' },
  { name: 'Jobs', at: 'jobs' },
  { name: 'Policy', at: 'policies' },
  { name: 'Cost', at: 'cost' },
  { name: 'Cluster', at: 'cluster' },
] as const;

/** The page of an address. */
function pageOf([first = '', id = '', of = '']: readonly string[]) {
  switch (first) {
    case 'devices':
      return <DevicePage uuid={id} />;
    case 'queue':
      return <QueuePage />;
    case 'functions':
      return id === '' ? <FunctionsPage /> : <FunctionPage key={id} name={id} />;
    case 'new-function':
      return <NewFunctionPage />;
    case 'activations':
      return id === '' || id === 'of' ? <ActivationsPage of={of} /> : <ActivationPage key={id} id={id} />;
    case 'jobs':
      return id === '' ? <JobsPage /> : <JobPage key={id} id={id} />;
    case 'policies':
      return <PoliciesPage />;
    case 'cost':
      return <CostPage />;
    case 'cluster':
      return <ClusterPage />;
    default:
      return <OverviewPage />;
  }
}

/** Moves the focus to the heading of a page that the user goes to, as a browser does when it loads another document. */
function useFocusOnNavigation(): RefObject<HTMLElement | null> {
  const main = useRef<HTMLElement>(null);
  const before = useRef(route.value);
  const address = route.value;
  useEffect(() => {
    if (before.current === address) return;
    before.current = address;
    const heading = main.current?.querySelector('h1');
    heading?.setAttribute('tabindex', '-1');
    heading?.focus();
  }, [address]);
  return main;
}

/** The whole page. */
export function Console() {
  const who = session.value;
  if (who === undefined) return <SignInPage />;
  const [first = ''] = route.value;
  const main = useFocusOnNavigation();
  return (
    <>
      <header>
        <a class="brand" href={hrefOf()}>
          gpuwhisk
        </a>
        <nav aria-label="Pages">
          {pages.map(({ name, at }) => (
            <a key={at} href={hrefOf(...(at === '' ? [] : [at]))} aria-current={first === at ? 'page' : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <a href="../docs/" target="_blank" rel="noreferrer">
          Docs
        </a>
        <Link />
        <span class="who">{who.isOperator ? 'operator' : who.namespace}</span>
        <button type="button" onClick={() => signOut()}>
          Sign out
        </button>
      </header>
      <main ref={main}>{pageOf(route.value)}</main>
    </>
  );
}

/** Whether what is shown is of now. */
function Link() {
  const words = { idle: '', connecting: 'connecting', live: 'live', lost: 'connection lost, trying again' };
  return (
    <span class={`link ${link.value}`} role="status">
      {words[link.value]}
    </span>
  );
}
