"""What each call of the tables is expected to come to, where that is not a gradient."""

# Nothing that comes back changes with the arguments, but by jumps; or there are no arguments.
_VALUES = """
    stats.ansari stats.brunnermunzel stats.chatterjeexi stats.cramervonmises_2samp stats.fligner
    stats.friedmanchisquare stats.kruskal stats.mannwhitneyu stats.mood stats.rankdata
    stats.spearmanrho stats.wilcoxon
    signal.besselap signal.buttap signal.choose_conv_method signal.get_window signal.savgol_coeffs
    signal.windows.barthann signal.windows.bartlett signal.windows.blackman
    signal.windows.blackmanharris signal.windows.bohman signal.windows.boxcar
    signal.windows.chebwin signal.windows.cosine signal.windows.exponential
    signal.windows.flattop signal.windows.get_window signal.windows.hamming signal.windows.hann
    signal.windows.lanczos signal.windows.nuttall signal.windows.parzen signal.windows.taylor
    signal.windows.triang signal.windows.tukey
    ndimage.find_objects ndimage.value_indices ndimage.watershed_ift
    spatial.transform.RigidTransform.identity spatial.transform.Rotation.__repr__
    spatial.transform.Rotation.approx_equal
    cluster.hierarchy.correspond cluster.hierarchy.is_isomorphic cluster.hierarchy.is_monotonic
    cluster.hierarchy.is_valid_im cluster.hierarchy.is_valid_linkage
    cluster.hierarchy.num_obs_linkage
    fft.fftfreq fft.rfftfreq
"""
VALUES = set(_VALUES.split())

COMPILED = "compiled code: SciPy asks for NumPy arrays, which carry no gradient"
NUMBER = "SciPy converts the argument to a plain number: a warning says that it carries no gradient"
RANGE = "SciPy makes a range of frequencies, whose ends are plain numbers"
OVERWRITTEN = "SciPy writes into an array that backward needs, or into a view that is read-only"
METHODS = "SciPy calls methods that NumPy's arrays have and the standard does not"
SWALLOWED = "compiled code that raises an error of its own"

# What is raised, by its beginning.
ERRORS = {
    COMPILED: "pullback.errors.GraphError: numpy: can't convert a Tensor that requires grad",
    NUMBER: "pullback.errors.UntrackedTensorWarning: float: a tensor that requires grad becomes",
    RANGE: "pullback.errors.GraphError: linspace: a number required as 'start'",
    OVERWRITTEN: "pullback.errors.InplaceError: ",
    METHODS: ("pullback.errors.ArgumentTypeError: ", "builtins.AttributeError: a Tensor has no"),
    SWALLOWED: "builtins.ValueError: could not convert b, a, and x to a common type",
}

_FAILING = {
    COMPILED: """
        special.bdtr special.bdtrc special.bdtri special.binom special.boxcox special.boxcox1p
        special.chdtri special.cosdg special.cosm1 special.cotdg special.ellipk
        special.ellipkm1 special.exp10 special.expn special.exprel special.fdtr special.fdtri
        special.gammasgn special.gdtr special.gdtrc special.huber special.hyp1f1 special.inv_boxcox
        special.inv_boxcox1p special.kl_div special.lpmv special.multigammaln special.nbdtr
        special.nbdtrc special.nbdtri special.pdtr special.pdtrc special.pdtri special.poch
        special.pseudo_huber special.radian special.sindg special.spence special.tandg special.zetac
        stats.cramervonmises stats.ks_1samp stats.power
        signal.bilinear signal.convolve signal.convolve2d signal.correlate
        signal.correlate2d signal.cspline1d signal.cspline1d_eval signal.cspline2d
        signal.detrend signal.ellipord signal.filtfilt signal.firls signal.firwin2 signal.iirdesign
        signal.impulse signal.lfilter signal.lfilter_zi signal.medfilt signal.medfilt2d
        signal.order_filter signal.place_poles signal.qspline1d signal.qspline1d_eval signal.remez
        signal.resample_poly signal.savgol_filter signal.sos2tf signal.sosfilt
        signal.sosfilt_zi signal.sosfiltfilt signal.spline_filter signal.tf2sos
        signal.upfirdn signal.wiener signal.zpk2sos signal.zpk2tf
        signal.windows.general_hamming signal.windows.kaiser signal.windows.kaiser_bessel_derived
        cluster.hierarchy.average cluster.hierarchy.centroid cluster.hierarchy.complete
        cluster.hierarchy.cophenet cluster.hierarchy.fcluster cluster.hierarchy.fclusterdata
        cluster.hierarchy.from_mlab_linkage cluster.hierarchy.inconsistent
        cluster.hierarchy.leaders cluster.hierarchy.leaves_list cluster.hierarchy.linkage
        cluster.hierarchy.maxRstat cluster.hierarchy.maxdists cluster.hierarchy.maxinconsts
        cluster.hierarchy.median cluster.hierarchy.optimal_leaf_ordering cluster.hierarchy.single
        cluster.hierarchy.ward cluster.hierarchy.weighted cluster.vq.kmeans cluster.vq.kmeans2
        cluster.vq.vq
        fft.dct fft.dctn fft.dst fft.dstn fft.idct fft.idctn fft.idst fft.idstn
        interpolate.Akima1DInterpolator interpolate.BPoly interpolate.BSpline
        interpolate.CubicHermiteSpline interpolate.CubicSpline interpolate.NdBSpline
        interpolate.PPoly interpolate.PchipInterpolator interpolate.RegularGridInterpolator
        interpolate.generate_knots interpolate.make_interp_spline interpolate.make_lsq_spline
        interpolate.make_smoothing_spline interpolate.make_splrep
        ndimage.affine_transform ndimage.binary_closing ndimage.binary_dilation
        ndimage.binary_erosion ndimage.binary_fill_holes ndimage.binary_hit_or_miss
        ndimage.binary_opening ndimage.binary_propagation ndimage.black_tophat
        ndimage.center_of_mass ndimage.convolve ndimage.convolve1d ndimage.correlate
        ndimage.correlate1d ndimage.distance_transform_bf ndimage.distance_transform_cdt
        ndimage.extrema ndimage.fourier_ellipsoid ndimage.fourier_gaussian ndimage.fourier_shift
        ndimage.fourier_uniform ndimage.gaussian_filter ndimage.gaussian_filter1d
        ndimage.gaussian_gradient_magnitude ndimage.gaussian_laplace ndimage.generic_filter
        ndimage.generic_filter1d ndimage.generic_gradient_magnitude ndimage.generic_laplace
        ndimage.geometric_transform ndimage.grey_closing ndimage.grey_dilation
        ndimage.grey_erosion ndimage.grey_opening ndimage.histogram ndimage.iterate_structure
        ndimage.label ndimage.labeled_comprehension ndimage.laplace ndimage.map_coordinates
        ndimage.maximum ndimage.maximum_filter ndimage.maximum_filter1d ndimage.maximum_position
        ndimage.mean ndimage.median ndimage.median_filter ndimage.minimum ndimage.minimum_filter
        ndimage.minimum_filter1d ndimage.minimum_position ndimage.morphological_gradient
        ndimage.morphological_laplace ndimage.percentile_filter ndimage.prewitt
        ndimage.rank_filter ndimage.rotate ndimage.shift ndimage.sobel ndimage.spline_filter
        ndimage.spline_filter1d ndimage.standard_deviation ndimage.sum ndimage.sum_labels
        ndimage.uniform_filter ndimage.uniform_filter1d ndimage.variance
        ndimage.vectorized_filter ndimage.white_tophat ndimage.zoom
        """,
    NUMBER: """
        signal.bessel signal.butter signal.buttord signal.cheb1ap signal.cheb2ap signal.cheby1
        signal.cheby2 signal.ellip signal.ellipap signal.gammatone
        signal.iircomb signal.iirfilter signal.iirnotch signal.iirpeak signal.lp2hp[wo]
        signal.lp2lp[wo]
        """,
    RANGE: "signal.bode",
    OVERWRITTEN: """
        stats.boxcox_llf stats.false_discovery_control spatial.transform.Rotation.align_vectors
        spatial.transform.RigidTransform.from_dual_quat integrate.nsum integrate.romb
        integrate.tanhsinh optimize.elementwise.find_minimum signal.minimum_phase
        """,
    METHODS: "interpolate.RBFInterpolator interpolate.make_splprep ndimage.distance_transform_edt",
    SWALLOWED: "signal.deconvolve",
}
FAILING = {name: reason for reason, names in _FAILING.items() for name in names.split()}
