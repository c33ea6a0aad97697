"""What has a gradient where a function of SciPy's has none.

Names are those below ``scipy``. A star stands for the function's own name. A way that is one name
takes the same arguments, or nearly; others say what to write.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["BRIDGED", "WAYS", "WITH_SWITCH"]

_CONTINUOUS = """
    beta cauchy chi2 expon gamma halfnorm invgamma laplace logistic lognorm norm pareto t uniform
    weibull_min
"""
_DISCRETE = "bernoulli binom geom nbinom poisson"
_OTHERS = """
    stats.dirichlet.logpdf stats.dirichlet.pdf
    stats.multivariate_normal.logpdf stats.multivariate_normal.pdf
    special.log_softmax special.logsumexp special.multigammaln special.softmax
    linalg.cho_factor linalg.cho_solve linalg.cholesky linalg.det linalg.expm linalg.inv
    linalg.logm linalg.solve linalg.solve_banded linalg.solve_sylvester linalg.solve_triangular
    linalg.sqrtm
    integrate.cumulative_trapezoid integrate.odeint integrate.quad integrate.simpson
    integrate.solve_ivp integrate.trapezoid
    interpolate.CubicSpline interpolate.PPoly interpolate.PchipInterpolator
    interpolate.interp1d
    sparse.coo_array sparse.csc_array sparse.csr_array sparse.linalg.spsolve
"""


def _distributions(names: str, *density: str) -> Iterator[str]:
    for name in names.split():
        for method in (*density, "cdf", "sf", "logcdf", "logsf"):
            yield f"stats.{name}.{method}"


# What `pullback.interop.scipy` has under the same name; a test compares it with what is there.
BRIDGED = frozenset(
    (
        *_distributions(_CONTINUOUS, "pdf", "logpdf"),
        *_distributions(_DISCRETE, "pmf", "logpmf"),
        *_OTHERS.split(),
    )
)

# What takes tensors where SCIPY_ARRAY_API=1 is set; those of docs/scipy.md with a gradient.
WITH_SWITCH = {
    "cluster.vq": "whiten",
    "differentiate": "derivative hessian jacobian",
    "fft": """fft fft2 fftn fftshift fht hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ifht ihfft
        ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftn""",
    "integrate": "cubature cumulative_simpson cumulative_trapezoid qmc_quad trapezoid",
    "linalg": "block_diag fiedler orthogonal_procrustes",
    "optimize": "rosen rosen_der rosen_hess rosen_hess_prod",
    "signal": """abcd_normalize bilinear_zpk cheb1ord cheb2ord envelope fftconvolve firwin freqs
        freqs_zpk freqz freqz_sos freqz_zpk gauss_spline group_delay hilbert hilbert2 lfiltic lp2bp
        lp2bp_zpk lp2bs lp2bs_zpk lp2hp lp2hp_zpk lp2lp lp2lp_zpk normalize oaconvolve resample
        sos2zpk sosfreqz tf2zpk vectorstrength""",
    "signal.windows": "gaussian general_cosine general_gaussian",
    "spatial.transform": "RigidTransform Rotation Slerp",
    "stats": """alexandergovern bartlett bootstrap chisquare circmean circstd circvar
        combine_pvalues describe differential_entropy directional_stats entropy
        epps_singleton_2samp f_oneway gmean gstd gzscore hmean iqr jarque_bera kstat kstatvar
        kurtosis kurtosistest levene lmoment median_abs_deviation mode moment monte_carlo_test
        normaltest pearsonr permutation_test pmean power_divergence quantile sem sigmaclip skew
        skewtest tmax tmean tmin trim_mean tsem tstd ttest_1samp ttest_ind ttest_ind_from_stats
        ttest_rel tvar variation yeojohnson_llf zmap zscore""",
}

# One row: names that share a module, a colon, the way.
WAYS = {
    "linalg": r"""
eig eigvals eigh eigvalsh svd svdvals qr pinv norm: np.linalg.*
eigh_tridiagonal eigvalsh_tridiagonal eig_banded eigvals_banded: np.linalg.eigh of the full matrix
lstsq: np.linalg.pinv(a) @ b
pinvh: np.linalg.pinv
null_space orth subspace_angles: singular vectors by np.linalg.svd
polar: u, s, vh = np.linalg.svd(a); the orthogonal part is u @ vh
rq qr_multiply qr_update qr_insert qr_delete: np.linalg.qr
lu lu_factor lu_solve ldl: systems by np.linalg.solve, determinants by np.linalg.slogdet
schur rsf2csf hessenberg qz ordqz cossin cdf2rdf: np.linalg.eig, or np.linalg.eigh where a is
    symmetric
cholesky_banded cho_solve_banded solveh_banded: pb.interop.scipy.linalg.solve_banded
toeplitz: np.concatenate([r[:0:-1], c])[np.arange(m)[:, None] - np.arange(n) + n - 1]
circulant: c[(np.arange(n)[:, None] - np.arange(n)) % n]
hankel: np.concatenate([c, r[1:]])[np.arange(m)[:, None] + np.arange(n)]
companion leslie convolution_matrix fiedler_companion: np.concatenate, np.diag and indexing
block_diag: pb.block_diag
diagsvd: np.diag
khatri_rao: np.einsum("ik,jk->ijk", a, b).reshape(-1, n)
solve_toeplitz solve_circulant: np.linalg.solve of the matrix, which indexing makes: c[np.abs(i[:,
    None] - i)] with i = np.arange(n)
matmul_toeplitz: np.convolve
solve_lyapunov solve_continuous_lyapunov: pb.interop.scipy.linalg.solve_sylvester(a, a.T, q)
solve_discrete_lyapunov: np.linalg.solve(np.eye(n * n) - np.kron(a, a), q.ravel()).reshape(n, n)
solve_continuous_are solve_discrete_are: pb.implicit.root of the equation, started at SciPy's
    solution for the values
fractional_matrix_power: pb.interop.scipy.linalg.expm(p * pb.interop.scipy.linalg.logm(a))
coshm sinhm tanhm cosm sinm tanm: sums of pb.interop.scipy.linalg.expm(a) and of -a, or of 1j * a
funm signm: w, v = np.linalg.eigh(a); (v * f(w)) @ v.T where a is symmetric
expm_frechet expm_cond: pb.jvp of pb.interop.scipy.linalg.expm
clarkson_woodruff_transform: a random np matrix @ t
dft: np.fft.fft
matrix_balance: np.diag of the scales that it finds for the values
bandwidth ishermitian issymmetric: its result has no derivative, for which t.detach() is right
""",
    "fft": r"""
fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft fftshift ifftshift:
    np.fft.*
hfft2 hfftn ihfft2 ihfftn: pb.fft.*
dct idct dst idst dctn idctn dstn idstn: linear, so a product with a constant:
    scipy.fft.dct(np.eye(n), axis=0) @ t, along each axis
""",
    "special": r"""
cbrt exp2 exp10 round sinc expm1 log1p: np.cbrt, np.exp2, 10 ** t, np.round, np.sinc, np.expm1,
    np.log1p
cosm1: -2 * np.sin(t / 2) ** 2
sindg cosdg tandg cotdg radian: np.sin, np.cos or np.tan of np.deg2rad(t)
boxcox boxcox1p: np.expm1(lmbda * np.log(t)) / lmbda, with np.log1p for boxcox1p
inv_boxcox inv_boxcox1p: np.exp(np.log1p(lmbda * t) / lmbda), with np.expm1 for inv_boxcox1p
powm1: np.expm1(y * np.log(x))
exprel: np.expm1(t) / t
binom comb: 1 / ((n + 1) * pb.special.beta(n - k + 1, k + 1))
perm: np.exp(pb.special.gammaln(n + 1) - pb.special.gammaln(n - k + 1))
factorial factorial2 factorialk: pb.special.gamma(n + 1)
poch: np.exp(pb.special.gammaln(z + m) - pb.special.gammaln(z))
gammasgn: np.sign(pb.special.gamma(t)), which has no derivative
huber: np.where(np.abs(r) <= d, r ** 2 / 2, d * (np.abs(r) - d / 2))
pseudo_huber: d ** 2 * (np.sqrt(1 + (r / d) ** 2) - 1)
rel_entr: pb.special.xlogy(x, x / y)
kl_div: pb.special.xlogy(x, x / y) - x + y
log_expit: -np.logaddexp(0, -t)
softplus: np.logaddexp(0, t)
logsumexp: np.logaddexp.reduce, or pb.logsumexp
zetac: pb.special.zeta(t, 1) - 1
diric: np.sin(n * t / 2) / (n * np.sin(t / 2))
ndtri_exp: pb.special.ndtri(np.exp(t))
nrdtrimn: x - std * pb.special.ndtri(p)
nrdtrisd: (x - mean) / pb.special.ndtri(p)
chdtr: pb.special.gammainc(v / 2, x / 2)
chdtrc: pb.special.gammaincc(v / 2, x / 2)
chdtri: 2 * pb.special.gammainccinv(v / 2, p)
gdtr gdtrib gdtria gdtrix: pb.special.gammainc(b, a * x), and pb.special.gammaincinv for its
    inverse
gdtrc: pb.special.gammaincc(b, a * x)
pdtr: pb.special.gammaincc(k + 1, m)
pdtrc: pb.special.gammainc(k + 1, m)
pdtri pdtrik: pb.special.gammainccinv(k + 1, y)
bdtr: pb.special.betainc(n - k, k + 1, 1 - p)
bdtrc: pb.special.betainc(k + 1, n - k, p)
bdtri bdtrik bdtrin: 1 - pb.special.betaincinv(n - k, k + 1, y)
nbdtr: pb.special.betainc(n, k + 1, p)
nbdtrc: pb.special.betainc(k + 1, n, 1 - p)
nbdtri nbdtrik nbdtrin: pb.special.betaincinv(n, k + 1, y)
fdtr: pb.special.betainc(m / 2, n / 2, m * x / (n + m * x)) for m and n degrees of freedom
fdtri fdtridfd: y = pb.special.betaincinv(m / 2, n / 2, p); n * y / (m * (1 - y))
btdtria btdtrib: pb.special.betaincinv
stdtridf: pb.implicit.root of pb.special.stdtr
spherical_jn: np.sqrt(np.pi / (2 * z)) * pb.special.jv(n + 0.5, z)
spherical_yn: np.sqrt(np.pi / (2 * z)) * pb.special.yv(n + 0.5, z)
spherical_in: np.sqrt(np.pi / (2 * z)) * pb.special.iv(n + 0.5, z)
spherical_kn: np.sqrt(np.pi / (2 * z)) * pb.special.kv(n + 0.5, z)
hankel1 hankel2 hankel1e hankel2e jve yve: pb.special.jv and pb.special.yv, plus or minus 1j times
jvp yvp: (pb.special.jv(v - 1, z) - pb.special.jv(v + 1, z)) / 2, with pb.special.yv for yvp
ivp kvp: (pb.special.iv(v - 1, z) + pb.special.iv(v + 1, z)) / 2, minus that of pb.special.kv for
    kvp
h1vp h2vp: differences of pb.special.jv and pb.special.yv
riemann_zeta: pb.special.zeta(t, 1)
polygamma: pb.special.polygamma
betainccinv: pb.special.betaincinv(a, b, 1 - y)
lambertw wrightomega: pb.implicit.root(lambda w, x: w * np.exp(w) - x, w0, t)
eval_legendre: np.polyval(scipy.special.legendre(n).coef, t)
eval_chebyt eval_chebyu eval_chebyc eval_chebys: np.polyval(scipy.special.chebyt(n).coef, t), with
    the name of the polynomial
eval_sh_legendre eval_sh_chebyt eval_sh_chebyu eval_sh_jacobi:
    np.polyval(scipy.special.sh_legendre(n).coef, t), with the name of the polynomial
eval_hermite eval_hermitenorm: np.polyval(scipy.special.hermite(n).coef, t), or
    scipy.special.hermitenorm
eval_laguerre eval_genlaguerre assoc_laguerre: np.polyval(scipy.special.genlaguerre(n,
    alpha).coef, t)
eval_jacobi eval_gegenbauer: np.polyval(scipy.special.jacobi(n, a, b).coef, t)
lpmv sph_harm_y sph_harm lpn lpmn clpmn legendre_p assoc_legendre_p sph_legendre_p: np.polyval of
    the Legendre polynomial's coefficients, times powers of np.sin and np.exp(1j * m * theta)
hyp0f1: pb.special.gamma(v) * z ** ((1 - v) / 2) * pb.special.iv(v - 1, 2 * np.sqrt(z))
dawsn erfi wofz voigt_profile fresnel modfresnelm modfresnelp owens_t spence sici shichi expn: its
    integral, by pb.interop.scipy.integrate.quad
ellipk ellipkm1 ellipkinc ellipe ellipeinc elliprc elliprd elliprf elliprg elliprj: its integral,
    by pb.interop.scipy.integrate.quad(lambda s: (1 - m * np.sin(s) ** 2) ** -0.5, 0, np.pi / 2)
    for ellipk
hyp1f1 hyp2f1 hyperu struve modstruve itstruve0 it2struve0 itmodstruve0 iti0k0 it2i0k0 itj0y0
    it2j0y0 itairy: its integral, by pb.interop.scipy.integrate.quad
""",
    "stats": r"""
norm.ppf norm.isf: loc + scale * pb.special.ndtri(q), with 1 - q for isf
lognorm.ppf lognorm.isf: scale * np.exp(s * pb.special.ndtri(q)), with 1 - q for isf
t.ppf t.isf: loc + scale * pb.special.stdtrit(df, q), with 1 - q for isf
gamma.ppf gamma.isf: scale * pb.special.gammaincinv(a, q), with pb.special.gammainccinv for isf
chi2.ppf chi2.isf: 2 * pb.special.gammaincinv(df / 2, q), with pb.special.gammainccinv for isf
invgamma.ppf invgamma.isf: scale / pb.special.gammainccinv(a, q), with pb.special.gammaincinv for
    isf
beta.ppf beta.isf: pb.special.betaincinv(a, b, q), with 1 - q for isf
expon.ppf expon.isf: loc - scale * np.log1p(-q), with np.log(q) for isf
uniform.ppf uniform.isf: loc + scale * q, with 1 - q for isf
logistic.ppf logistic.isf: loc + scale * pb.special.logit(q), with 1 - q for isf
cauchy.ppf cauchy.isf: loc + scale * np.tan(np.pi * (q - 0.5)), with 1 - q for isf
laplace.ppf laplace.isf: loc - scale * np.sign(q - 0.5) * np.log(1 - 2 * np.abs(q - 0.5)), with 1
    - q for isf
pareto.ppf pareto.isf: scale * (1 - q) ** (-1 / b), with q for isf
weibull_min.ppf weibull_min.isf: scale * (-np.log1p(-q)) ** (1 / c), with 1 - q for isf
halfnorm.ppf halfnorm.isf: loc + scale * pb.special.ndtri((1 + q) / 2), with 1 - q for isf
f.cdf f.sf: pb.special.betainc(m / 2, n / 2, m * x / (n + m * x)) for m and n degrees of freedom
erlang.logpdf erlang.pdf erlang.cdf erlang.sf: pb.interop.scipy.stats.gamma
chi.logpdf chi.pdf chi.cdf chi.sf: pb.interop.scipy.stats.chi2 of x ** 2, the density times 2 * x
rayleigh.logpdf rayleigh.pdf rayleigh.cdf rayleigh.sf: pb.interop.scipy.stats.weibull_min with c =
    2 and a scale of np.sqrt(2) times that
rvs: draws by their parameters: loc + scale * np.random.normal(size=n), for other distributions
    their ppf of np.random.uniform(size=n)
gaussian_kde: pb.interop.scipy.stats.norm.pdf(x[:, None], data, width).mean(1)
linregress siegelslopes theilslopes: np.cov and np.mean, or np.linalg.pinv
boxcox boxcox_llf boxcox_normmax: np.expm1(lmbda * np.log(t)) / lmbda
yeojohnson yeojohnson_normmax: np.where, np.log1p and **, with lmbda of the values
wasserstein_distance: np.mean(np.abs(np.sort(u) - np.sort(v))) for as many samples each
wasserstein_distance_nd energy_distance: pb.cdist
binned_statistic binned_statistic_2d binned_statistic_dd: pb.index_add at the bins of the values
zscore: (t - np.mean(t)) / np.std(t)
gmean: np.exp(np.mean(np.log(t)))
hmean: 1 / np.mean(1 / t)
pmean: np.mean(t ** p) ** (1 / p)
entropy: -np.sum(pb.special.xlogy(p, p)) with p = t / np.sum(t)
moment: np.mean((t - np.mean(t)) ** order)
skew: np.mean((t - np.mean(t)) ** 3) / np.std(t) ** 3
kurtosis: np.mean((t - np.mean(t)) ** 4) / np.var(t) ** 2 - 3
pearsonr: np.corrcoef
iqr scoreatpercentile: np.percentile
sem: np.std(t, ddof=1) / np.sqrt(n)
trimboth trim1 trim_mean: np.mean of a slice of np.sort(t)
bayes_mvs mvsdist: np.mean and np.var
obrientransform: np.mean and np.var
fit: pb.optimize.minimize of the negative log density in pb.interop.scipy.stats
expectile: pb.implicit.root of its equation
pointbiserialr: np.corrcoef
anderson_ksamp ansari brunnermunzel bws_test chatterjeexi chi2_contingency cramervonmises_2samp
    false_discovery_control fligner friedmanchisquare kendalltau kruskal ks_2samp kstest ks_1samp
    mannwhitneyu median_test mood page_trend_test percentileofscore rankdata ranksums relfreq
    cumfreq shapiro somersd spearmanr spearmanrho weightedtau wilcoxon: ranks and counts, which
    have no derivative, so t.detach() is right
pdf logpdf pmf logpmf cdf logcdf sf logsf ppf isf: its formula, in np and pb.special, such as
    pb.interop.scipy.stats.norm.logpdf has
multivariate_t.logpdf multivariate_t.pdf: np.linalg.solve, np.linalg.slogdet and
    pb.special.gammaln
matrix_normal.logpdf wishart.logpdf invwishart.logpdf: np.linalg.solve, np.linalg.slogdet and
    pb.interop.scipy.special.multigammaln
""",
    "sparse": r"""
csr_matrix bsr_array bsr_matrix dok_array dok_matrix lil_array lil_matrix:
    pb.interop.scipy.sparse.csr_array((values, (rows, columns)), shape=...)
csc_matrix: pb.interop.scipy.sparse.csc_array((values, (rows, columns)), shape=...)
coo_matrix dia_array dia_matrix diags diags_array spdiags eye_array block_diag block_array bmat:
    pb.interop.scipy.sparse.coo_array((values, (rows, columns)), shape=...)
hstack vstack kron kronsum tril triu find random random_array identity eye:
    pb.interop.scipy.sparse.coo_array((values, (rows, columns)), shape=...)
__matmul__ _matmul_dispatch dot _matmul_vector _matmul_multivector:
    pb.interop.scipy.sparse.csr_array(A) @ t
__rmatmul__ _rmatmul_dispatch: pb.interop.scipy.sparse.csr_array(A.T) @ t
__mul__ __rmul__ multiply _mul_dispatch __truediv__ _divide power:
    pb.interop.scipy.sparse.csr_array((A.data * t, A.indices, A.indptr), shape=A.shape)
__add__ __radd__ __sub__ __rsub__ maximum minimum: pb.interop.scipy.sparse.csr_array(A) @ x, or
    A.toarray() + t
""",
    "sparse.linalg": r"""
splu spilu factorized spsolve_triangular is_sptriangular spbandwidth SuperLU:
    pb.interop.scipy.sparse.linalg.spsolve(A, b)
cg cgs bicg bicgstab gmres lgmres gcrotmk minres qmr tfqmr:
    pb.interop.scipy.sparse.linalg.spsolve(A, b), or pb.implicit.linear_solve(matvec, b)
lsqr lsmr: np.linalg.pinv(A) @ b, or pb.interop.scipy.sparse.linalg.spsolve of the normal
    equations
eigs: np.linalg.eig of the dense matrix
eigsh lobpcg: np.linalg.eigh of the dense matrix
svds: np.linalg.svd of the dense matrix
expm: pb.interop.scipy.linalg.expm
expm_multiply: pb.interop.scipy.linalg.expm(A) @ b with A dense, or pb.implicit.odeint
funm_multiply_krylov: pb.interop.scipy.linalg.expm, logm or sqrtm with A dense
inv: pb.interop.scipy.sparse.linalg.spsolve(A, b), or np.linalg.inv of the dense matrix
norm onenormest: np.linalg.norm of the values, or of the dense matrix
matrix_power: np.linalg.matrix_power of the dense matrix
aslinearoperator LinearOperator LaplacianNd: pb.implicit.linear_solve(matvec, b), or any function
    of t
""",
    "optimize": r"""
minimize fmin fmin_bfgs fmin_cg fmin_ncg fmin_l_bfgs_b fmin_powell fmin_slsqp fmin_tnc fmin_cobyla
    minimize_scalar fminbound brent golden brute: pb.implicit.argmin(f, x0, *theta), or
    pb.optimize.minimize where the result needs no gradient
basinhopping differential_evolution dual_annealing shgo direct: on values alone, then
    pb.implicit.argmin(f, result.x, *theta)
fsolve root newton root_scalar brentq brenth bisect ridder toms748 broyden1 broyden2 anderson
    newton_krylov diagbroyden linearmixing excitingmixing: pb.implicit.root(f, x0, *theta)
fixed_point: pb.implicit.fixed_point(f, x0, *theta)
least_squares leastsq: pb.implicit.argmin of the sum of squares, or
    pb.optimize.least_squares where the result needs no gradient
curve_fit: pb.optimize.least_squares(lambda p: f(x, p) - y, p0), or pb.implicit.argmin of the sum
    of squares where the result needs a gradient
nnls lsq_linear isotonic_regression: np.linalg.pinv of the columns that the solution for the
    values uses
linprog milp linprog_verbose_callback: np.linalg.solve of the constraints that are active at the
    solution for the values
linear_sum_assignment quadratic_assignment: t[rows, columns].sum() with the rows and columns of
    the values
approx_fprime check_grad: pb.grad, pb.jacobian and pb.check.gradcheck
bracket line_search: pb.optimize.minimize
""",
    "integrate": r"""
dblquad tplquad nquad: pb.interop.scipy.integrate.quad in pb.interop.scipy.integrate.quad
quad_vec fixed_quad quadrature romberg cubature tanhsinh qmc_quad: pb.interop.scipy.integrate.quad
romb cumulative_simpson: pb.interop.scipy.integrate.simpson
nsum: np.sum
solve_bvp: pb.implicit.root of the equations at the mesh of the values' solution
RK23 RK45 DOP853 Radau BDF LSODA OdeSolver ode complex_ode:
    pb.interop.scipy.integrate.solve_ivp(..., method="Radau")
""",
    "interpolate": r"""
Akima1DInterpolator pchip_interpolate pchip: pb.interop.scipy.interpolate.PchipInterpolator
CubicHermiteSpline BPoly NdPPoly: pb.interop.scipy.interpolate.PPoly
UnivariateSpline InterpolatedUnivariateSpline LSQUnivariateSpline splrep splev splint spalde
    splder splantider sproot splprep insert make_interp_spline make_lsq_spline
    make_smoothing_spline make_splrep make_splprep generate_knots BSpline:
    pb.interop.scipy.interpolate.CubicSpline
KroghInterpolator krogh_interpolate BarycentricInterpolator barycentric_interpolate lagrange
    approximate_taylor_polynomial pade: np.polyval(np.linalg.solve(np.vander(x), y), t)
RegularGridInterpolator interpn RectBivariateSpline RectSphereBivariateSpline interp2d NdBSpline
    bisplrep bisplev SmoothBivariateSpline LSQBivariateSpline SmoothSphereBivariateSpline
    LSQSphereBivariateSpline: pb.nn.functional.grid_sample, or pb.implicit.interp along each axis
griddata LinearNDInterpolator CloughTocher2DInterpolator NearestNDInterpolator: sums of t[corners]
    with weights of the triangle that contains the point
RBFInterpolator Rbf: np.linalg.solve of a function of pb.cdist
AAA FloaterHormannInterpolator: np.linalg.solve and quotients of sums
""",
    "signal": r"""
convolve fftconvolve oaconvolve: np.convolve, or pb.nn.functional.conv2d
correlate choose_conv_method correlation_lags: np.correlate, or pb.nn.functional.conv2d
convolve2d correlate2d sepfir2d: pb.nn.functional.conv2d
deconvolve: np.fft.ifft of a quotient of np.fft.fft
lfilter lfilter_zi sosfilt sosfilt_zi filtfilt sosfiltfilt upfirdn: linear in the signal, so a
    product with a constant: scipy.signal.lfilter(b, a, np.eye(n), axis=0) @ t
savgol_filter savgol_coeffs detrend decimate resample resample_poly: linear, so a product with a
    constant: scipy.signal.detrend(np.eye(n), axis=0) @ t, and so on
cspline1d cspline1d_eval qspline1d qspline1d_eval cspline2d qspline2d spline_filter symiirorder1
    symiirorder2: pb.interop.scipy.interpolate.CubicSpline
hilbert hilbert2 envelope: np.fft.ifft of np.fft.fft(t) times 0, 1 and 2
stft ShortTimeFFT spectrogram: pb.stft
istft: pb.istft
welch csd periodogram coherence lombscargle: np.abs(np.fft.rfft(window * t)) ** 2 of parts of t,
    or pb.stft
czt zoom_fft CZT ZoomFFT: np.exp(-2j * np.pi * np.outer(frequencies, np.arange(n))) @ t
find_peaks find_peaks_cwt argrelextrema argrelmax argrelmin peak_prominences peak_widths:
    t[indices] with the indices of the values
medfilt medfilt2d order_filter wiener: np.median or np.sort of t[np.arange(n - k + 1)[:, None] +
    np.arange(k)]
freqz freqs sosfreqz freqz_zpk freqz_sos freqs_zpk group_delay bode dbode freqresp dfreqresp:
    np.polyval(b, z) / np.polyval(a, z)
lsim step impulse dlsim dstep dimpulse lti dlti StateSpace TransferFunction ZerosPolesGain
    cont2discrete: pb.interop.scipy.integrate.solve_ivp, or pb.interop.scipy.linalg.expm
tf2zpk tf2sos tf2ss zpk2tf zpk2sos zpk2ss sos2tf sos2zpk ss2tf ss2zpk residue residuez invres
    invresz unique_roots: np.convolve, np.polyval and np.linalg.eigvals
chirp sawtooth square gausspulse sweep_poly unit_impulse: np.cos, np.exp and np.where of the time
butter cheby1 cheby2 ellip bessel iirfilter iirdesign iirnotch iirpeak iircomb gammatone cheb1ap
    cheb2ap buttap ellipap besselap buttord ellipord firwin firwin2 firls remez: its frequency
    response in np.exp, np.sqrt and np.polyval
place_poles minimum_phase bilinear bilinear_zpk: np.linalg.solve, np.polyval and np.fft
""",
    "signal.windows": r"""
general_hamming general_cosine hamming hann kaiser kaiser_bessel_derived gaussian general_gaussian
    tukey exponential: np.cos, np.exp and np.i0 of np.arange(n)
""",
    "ndimage": r"""
convolve correlate gaussian_filter uniform_filter sobel prewitt laplace gaussian_laplace
    generic_laplace gaussian_gradient_magnitude generic_gradient_magnitude:
    pb.nn.functional.conv2d of np.pad(t, ...)
convolve1d correlate1d gaussian_filter1d uniform_filter1d: pb.nn.functional.conv1d or np.convolve
    of np.pad(t, ...)
maximum_filter minimum_filter grey_dilation grey_erosion grey_opening grey_closing white_tophat
    black_tophat morphological_gradient morphological_laplace: pb.nn.functional.max_pool2d
maximum_filter1d minimum_filter1d: pb.nn.functional.max_pool1d
median_filter percentile_filter rank_filter generic_filter generic_filter1d vectorized_filter:
    np.median, np.quantile or another function of t[np.arange(n - k + 1)[:, None] + np.arange(k)]
shift rotate affine_transform geometric_transform map_coordinates: pb.nn.functional.grid_sample
spline_filter spline_filter1d: pb.interop.scipy.interpolate.CubicSpline
zoom: pb.nn.functional.interpolate
center_of_mass: np.sum(t * places) / np.sum(t), with places of np.indices(t.shape)
sum sum_labels mean variance standard_deviation labeled_comprehension: np.sum, np.mean, np.var or
    np.std of t[labels == k]
maximum minimum median extrema maximum_position minimum_position: np.max, np.min or np.median of
    t[labels == k]
fourier_gaussian fourier_uniform fourier_shift fourier_ellipsoid: t times a constant:
    scipy.ndimage.fourier_gaussian(np.ones(t.shape), sigma)
histogram: np.digitize of the values; counts have no gradient
binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss binary_opening
    binary_propagation distance_transform_bf distance_transform_cdt distance_transform_edt
    find_objects iterate_structure label value_indices watershed_ift: a mask or whole numbers of
    it, which have no derivative, so t.detach() is right
""",
    "spatial": r"""
distance_matrix: pb.cdist
minkowski_distance minkowski_distance_p: np.linalg.norm(u - v, ord=p, axis=-1)
KDTree cKDTree: np.linalg.norm(t[neighbours] - x, axis=-1) with the neighbours of the values
Delaunay ConvexHull Voronoi SphericalVoronoi HalfspaceIntersection tsearch: t[indices], with the
    indices (simplices, vertices) of the values
procrustes: np.linalg.svd
geometric_slerp: np.sin and np.arccos
""",
    "spatial.transform": r"""
Rotation: np.sin, np.cos and np.stack
""",
    "spatial.distance": r"""
cdist: pb.cdist
pdist: pb.pdist
squareform: d[indices], with indices of np.triu_indices(n, 1)
euclidean: np.linalg.norm(u - v)
sqeuclidean: np.sum((u - v) ** 2)
cityblock: np.sum(np.abs(u - v))
chebyshev: np.max(np.abs(u - v))
minkowski: np.linalg.norm(u - v, ord=p)
cosine: 1 - u @ v / (np.linalg.norm(u) * np.linalg.norm(v))
correlation: 1 - np.corrcoef(u, v)[0, 1]
mahalanobis: np.sqrt((u - v) @ VI @ (u - v))
seuclidean: np.sqrt(np.sum((u - v) ** 2 / V))
braycurtis: np.sum(np.abs(u - v)) / np.sum(np.abs(u + v))
canberra: np.sum(np.abs(u - v) / (np.abs(u) + np.abs(v)))
jensenshannon: np.sqrt of sums of pb.special.xlogy
dice hamming jaccard rogerstanimoto russellrao sokalsneath yule is_valid_dm is_valid_y num_obs_dm
    num_obs_y: it compares by == and counts, which has no derivative, so t.detach() is right
directed_hausdorff: pb.cdist(u, v).min(1).max()
""",
    "cluster.vq": r"""
vq kmeans kmeans2: pb.cdist, whose np.min has a gradient
""",
}
